"""The picker: what runs here already, and the profiles with their exact command."""

from __future__ import annotations

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Input, Static

from sparktui.ui.backend import CannotDo, Card
from sparktui.ui.screens.ask import AskScreen

_MARKS = {"run": "●", "server": "●", "container": "●", "script": "·", "profile": " ", "broken": "✖"}


class PickerScreen(Screen[None]):
    """Enter attaches or launches; ``v`` chooses a variant first."""

    BINDINGS = [
        Binding("slash", "filter", "Filter", id="picker.filter", tooltip="Only rows with this text"),
        Binding("v", "variant", "Variant", id="picker.variant", tooltip="Launch another variant"),
        Binding("f5,r", "reload", "Reload", id="picker.reload", tooltip="Look again"),
        Binding("escape", "clear_filter", "All", show=False, id="picker.all"),
    ]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]
    CSS = """
    PickerScreen #picker-title { height: 1; background: $panel; padding: 0 1; text-style: bold; }
    PickerScreen Input { display: none; }
    PickerScreen Input.shown { display: block; }
    PickerScreen DataTable { width: 1fr; height: 1fr; border: round $border; }
    PickerScreen #detail { width: 38; height: 1fr; border: round $border-blurred; padding: 0 1; }
    PickerScreen.-wide #detail { width: 50%; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._cards: tuple[Card, ...] = ()
        self._table: DataTable[Text] = DataTable(cursor_type="row", zebra_stripes=True)
        self._detail = Static("", markup=False, id="detail")
        self._filter = Input(placeholder="filter: plain text", compact=True)

    def compose(self) -> ComposeResult:
        yield Static("sparktui   looking around …", markup=False, id="picker-title")
        yield self._filter
        with Horizontal():
            yield self._table
            yield self._detail
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self._table.border_title = "Runs and profiles"
        self._detail.border_title = "Detail"
        for label in ("", "name", "state", "last"):
            self._table.add_column(label)
        self._table.focus()
        self.action_reload()

    def on_screen_resume(self) -> None:
        self.action_reload()

    @work(thread=True, exclusive=True, exit_on_error=False)
    def action_reload(self) -> None:
        """Look again, in a thread: docker and /proc may be slow."""
        from sparktui.ui.app import SparkApp

        assert isinstance(self.app, SparkApp)
        cards = self.app.backend.cards()
        self.app.call_from_thread(self.show, cards)

    def show(self, cards: tuple[Card, ...]) -> None:
        """The rows; the cursor stays on the row it was on."""
        here = self._selected()
        self._cards = cards
        profiles = sum(card.kind == "profile" for card in cards)
        running = sum(card.kind in ("run", "server", "container") for card in cards)
        title = f"sparktui   {profiles} profiles   {running} running here"
        self._say(title)
        self._fill(here.key if here else None)

    def _say(self, title: str) -> None:
        self.query_one("#picker-title", Static).update(title)

    def _fill(self, keep: str | None) -> None:
        words = self._filter.value.casefold()
        self._table.clear()
        for card in self._cards:
            if words in f"{card.title} {card.about} {card.state}".casefold():
                self._table.add_row(*_row(card), key=f"{card.kind}:{card.key}")
        rows = [card for card in self._cards if f"{card.kind}:{card.key}" in self._keys()]
        index = next((i for i, card in enumerate(rows) if card.key == keep), 0)
        if rows:
            self._table.move_cursor(row=index)
        self._show_detail(self._selected())

    def _keys(self) -> set[str]:
        return {str(key.value) for key in self._table.rows}

    def _selected(self) -> Card | None:
        if not self._table.row_count:
            return None
        key = self._table.coordinate_to_cell_key(self._table.cursor_coordinate).row_key.value
        return next((card for card in self._cards if f"{card.kind}:{card.key}" == key), None)

    def _show_detail(self, card: Card | None) -> None:
        self._detail.update("" if card is None else detail_text(card))

    @on(DataTable.RowHighlighted)
    def _highlighted(self, event: DataTable.RowHighlighted) -> None:
        self._show_detail(self._selected())

    @on(DataTable.RowSelected)
    def _chosen(self, event: DataTable.RowSelected) -> None:
        card = self._selected()
        if card is not None:
            self._open(card, None)

    def action_variant(self) -> None:
        """Choose, then launch."""
        card = self._selected()
        if card is None or not card.variants:
            return
        choices = [(str(i + 1), name, name) for i, name in enumerate(card.variants[:9])]

        def chosen(value: str | None) -> None:
            if value:
                self._open(card, value)

        self.app.push_screen(AskScreen(card.title, "Launch as:", choices), chosen)

    @work(thread=True, exclusive=True, exit_on_error=False, group="open")
    def _open(self, card: Card, variant: str | None) -> None:
        from sparktui.ui.app import SparkApp

        assert isinstance(self.app, SparkApp)
        doing = "starting the host for" if card.kind == "profile" else "attaching to"
        self.app.call_from_thread(self._say, f"sparktui   {doing} {card.title} …")
        try:
            run = self.app.backend.open(card, variant)
        except CannotDo as exc:
            self.app.call_from_thread(self.show, self._cards)
            self.app.call_from_thread(self.notify, str(exc), severity="error", markup=False, timeout=15)
            return
        self.app.call_from_thread(self.app.show_run, run)

    def action_filter(self) -> None:
        """Open the filter line."""
        self._filter.add_class("shown")
        self._filter.focus()

    def action_clear_filter(self) -> None:
        """All rows again."""
        self._filter.value = ""
        self._filter.remove_class("shown")
        self._table.focus()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        here = self._selected()
        self._fill(here.key if here else None)

    @on(Input.Submitted)
    def _filtered(self, event: Input.Submitted) -> None:
        self._table.focus()


def _row(card: Card) -> tuple[Text, Text, Text, Text]:
    mark = Text(_MARKS[card.kind], "green" if _MARKS[card.kind] == "●" else "red")
    state = card.state or card.boot
    return mark, Text(card.title), Text(state), Text(card.last, no_wrap=True, overflow="ellipsis")


def detail_text(card: Card) -> str:
    """Everything the row stands for."""
    parts = [card.title, ""]
    if card.about:
        parts += [card.about, ""]
    if card.variants:
        parts += [f"variants  {' '.join(card.variants)}", ""]
    if card.boot:
        parts += [f"last boot {card.boot}"]
    if card.last:
        parts += [f"last verdict: {card.last}", ""]
    if card.command:
        parts += ["$ " + card.command, ""]
    verbs = {
        "run": "enter attaches", "server": "enter attaches (watch; never stopped by sparktui)",
        "profile": "enter launches   v another variant", "container": "listed only, so far",
        "script": "listed only, so far", "broken": "mend the file, then r",
    }  # fmt: skip
    return "\n".join([*parts, verbs[card.kind]])
