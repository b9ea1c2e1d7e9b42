"""The help screen's text: keys and definitions, because tools disagree about the figures."""

from __future__ import annotations

from sparktui.ui.screens.text import Section

KEYS = (
    ("a", "A/B: speculation on against off (a sheet first)"),
    ("s  v  W", "switch side: restart as the other arm; v another variant; W another workload"),
    ("h l  ← →", "load down and up by a stop (the arrows unless a table has focus)"),
    ("0  X", "no load; X cuts draining streams, or cancels the A/B"),
    ("t  space", "window of the figures; hold the display, sampling goes on"),
    ("1 … 6", "maximise tiles (with every figure), charts, acceptance, findings, log or A/B; esc goes back"),
    ("] [", "next and previous finding in the log; in the findings pane by weight"),
    ("enter", "the whole record of the line or finding, with its rule"),
    ("d  u", "dismiss a finding: the header forgets it; u shows the dismissed ones again"),
    ("/ n N", "find in the log, next and previous match"),
    ("w  A", "only warnings, without those known as harmless; access log lines too"),
    ("f  g G", "follow the log; its top and end"),
    ("c  H", "arms and loads measured so far, earlier verdicts and boots"),
    ("y  e  E", "copy; write the report as Markdown; edit the profile"),
    ("x  r", "stop the server, relaunch (both ask)"),
    ("R  D", "runs and profiles; take over the keys from another terminal"),
    (": ctrl+p", "palette: all of this by name, and the facts of a boot"),
    ("?  q", "this help; quit (asks: leave running, stop)"),
)

FIGURES = (
    ("output tok/s", "the server's generation_tokens over time, all streams together"),
    (
        "decode tok/s",
        "per stream: decode tokens over decoding stream-seconds, requests in flight included. Tokens come "
        "from the server's usage, never from counting chunks",
    ),
    (
        "TTFT",
        "client: from the instant before the request is handed over to the first text (reasoning counts). "
        "server: from its histogram, an estimate inside a bucket; ≤ where all of it fell into one bucket",
    ),
    (
        "chunk gap",
        "time between two chunks of text, median and p99: what a reader sees. With speculation a chunk holds "
        "several tokens, so it is no time per token",
    ),
    (
        "chunks/s",
        "in place of tok/s where the server sends no usage: what came was counted in chunks, not in tokens",
    ),
    (
        "waiting",
        "requests without a first text, and how long the oldest has waited: a queue shows before any TTFT",
    ),
    ("TPOT, server", "its own time per output token of finished requests, median of its histogram"),
    (
        "step time",
        "sum over count of inter_token_latency: under speculation that counts steps, not tokens",
    ),
    ("tokens per step", "what one engine step yields for a stream"),
    ("acceptance", "accepted over drafted tokens; by position: accepted at i over all drafts"),
    ("mean length", "1 + accepted over drafts: of the steps that had a draft"),
    ("break-even", "step time on over step time off: a step must yield more tokens than that to pay"),
    (
        "graphs",
        "share of engine steps in their main CUDA graph mode, from the newest --cudagraph-metrics table in "
        "the log; steps larger than any graph, prefill mostly, are left out; ? where no table was printed",
    ),
    ("KV usage", "the fullest engine's, never a sum"),
    (
        "others",
        "requests on the server above ours in three scrapes in a row, and its tokens less ours: somebody "
        "else's traffic",
    ),
    (
        "stalled",
        "requests run and no counter of the server moves, while /metrics still answers; no answer: /metrics "
        "itself is silent. Either way rates become —, with the age of the last one",
    ),
    (
        "roof",
        "one stream only: GB read per step over the memory's bandwidth, both from the profile, against the "
        "step time: an estimate. Reads are the server's own count (--enable-mfu-metrics)",
    ),
    (
        "power",
        "what NVML says of the GPUs, all together; on unified memory that is the GPU's part only. ▲ on the "
        "curve: throttled; °: 85 °C or more",
    ),
    ("energy", "joules by NVML's counter, else integrated power, over output tokens of the same time"),
    (
        "log",
        "beside a figure: from the server's own log line, because /metrics was never in reach. One that fell "
        "silent is not replaced so: the log is as old",
    ),
    ("ago", "beside —: how old the last figure is, where one ought to be there"),
    (
        "client-limited",
        "the load process used over 80 % of a core or ran late by over 5 ms: this machine was too busy to "
        "receive at once what the server sent. All tokens are counted, the times are less sure",
    ),
    ("1v1", "one server start of each arm; c: streams at the same time; W: watts of all GPUs"),
)

_ALWAYS = (
    "Every figure is a difference over the last five seconds, never since boot; after a load change the "
    "window starts anew. — means not known: it is never shown as 0."
)
_VERDICT = (
    "A verdict's unit is one server start. The interval holds both runs' error over batches of wall-clock "
    "time and 2 % for noise from start to start; with one start each it is provisional."
)


def help_sections() -> tuple[Section, ...]:
    """All of it."""
    return (
        Section("Keys", KEYS),
        Section("Figures", (("", _ALWAYS),)),
        Section("Each figure", FIGURES),
        Section("Verdicts", (("", _VERDICT),)),
    )
