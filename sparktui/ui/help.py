"""The help screen's text: keys and definitions, because tools disagree about the figures."""

from __future__ import annotations

KEYS = """\
 a        A/B speculation on against off (sheet first)   s  switch side: restart as the other arm
 h l      load down and up by a stop (← → unless a table has focus)    0  idle    X  cut, or cancel the A/B
 space    hold the display; sampling goes on               t  window of the figures
 1 … 6    maximise a pane; esc goes back                   [ ]  previous and next finding
 / n N    find in the log      w  warnings only      f  follow      g G  top and end
 enter    the whole record of a finding        d  dismiss it        A  access log lines
 x        stop the server (asks)    r  relaunch (asks)    R  runs and profiles    D  take over the keys
 c H      arms and loads measured so far, earlier verdicts and boots
 y        copy      ? help      ctrl+p or :  palette      q  quit (asks: leave running, stop)
"""

DEFINITIONS = """\
Every figure is a difference over the last five seconds, never since boot; after a load change the window
starts anew. — means not known: it is never shown as 0.

output tok/s      the server's generation_tokens over time, all streams together
decode tok/s      per stream: decode tokens over decoding stream-seconds, requests in flight included.
                  Tokens come from the server's usage, never from counting chunks
TTFT              client: from the instant before the request is handed over to the first text (reasoning
                  counts). server: from its histogram, an estimate inside a bucket
step time         sum over count of inter_token_latency: under speculation that counts steps, not tokens
tokens per step   what one engine step yields for a stream
acceptance        accepted over drafted tokens; by position: accepted at i over all drafts
mean length       1 + accepted over drafts: of the steps that had a draft
break-even        step time on over step time off: a step must yield more tokens than that to pay
KV usage          the fullest engine's, never a sum
power             what NVML says of the GPUs; on unified memory that is the GPU's part only

client-limited    this machine was too busy to receive at once what the server sent: all tokens are
                  counted, the times are less sure
1v1               one server start of each arm; c: streams at the same time; W: watts of all GPUs

A verdict's unit is one server start. The interval holds both runs' error over batches of wall-clock time
and 2 % for noise from start to start; with one start each it is provisional.
"""


def help_text() -> str:
    """All of it."""
    return f"Keys\n\n{KEYS}\nFigures\n\n{DEFINITIONS}"
