"""The quick parser: it accepts, converts, refuses and explains as typer does."""

import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.main import get_command

from federation.cli import parsing


def an_app(seen: list[Any]) -> typer.Typer:
    one = typer.Typer(rich_markup_mode=None)

    def doubled(text: str) -> str:
        return text * 2

    def parsed(text: str) -> int:
        if not text:
            raise ValueError("empty")
        if text == "bad":
            raise typer.BadParameter("never bad")
        return len(text)

    @one.command()
    def try_it(
        name: Annotated[str, typer.Argument()],
        more: Annotated[list[str] | None, typer.Argument()] = None,
        count: Annotated[int, typer.Option(min=0, max=9)] = 3,
        share: Annotated[float | None, typer.Option(min=0.5)] = None,
        wait: Annotated[float, typer.Option(min=1)] = 2,
        form: Annotated[Literal["table", "json"], typer.Option()] = "table",
        file: Annotated[Path | None, typer.Option()] = None,
        there: Annotated[Path | None, typer.Option(exists=True)] = None,
        length: Annotated[int | None, typer.Option(parser=parsed)] = None,
        twice: Annotated[str, typer.Option(callback=doubled)] = "ab",
        tag: Annotated[list[str] | None, typer.Option()] = None,
        is_on: Annotated[bool, typer.Option("--on/--off")] = False,
    ) -> None:
        seen.append((name, more, count, share, wait, form, file, there, length, twice, tag, is_on))

    @one.command()
    def other() -> None:
        seen.append("other")

    return one


def outcome(words: list[str], *, is_quick: bool) -> tuple[list[Any], str]:
    """Return what the command received, with the types, and the error."""
    seen: list[Any] = []
    made = an_app(seen)
    command: Any = parsing.quicken(get_command(made)) if is_quick else made
    error = ""
    try:
        command(words, standalone_mode=False)
    except Exception as raised:  # noqa: BLE001  # whatever typer raises is compared
        error = f"{type(raised).__name__} {getattr(raised, 'format_message', raised.__str__)()}"
    return [repr(each) for each in seen], error


@pytest.mark.parametrize(
    "words",
    [
        "x", "x a b", "é", "x ü", "x --count 7", "x --count 007", "x --count 10", "x --count=-1", "x --count 1.5",
        "x --count one", "x --count 1e3", "x --count 1_0", "x --count ٣", "x --share 0.5", "x --share 0.4",
        "x --share 1", "x --share inf", "x --wait 0", "x --wait 5", "x --form json", "x --form xml", "x --form JSON",
        "x --file /none", "x --file /", "x --file é", "x --there /none", "x --there /", "x --length abc",
        "x --length bad", "x --length=", "x --twice q", "x --tag a --tag b", "x --tag é", "x --on", "x --off --count",
        "", "x --nonsense", "x --help",
    ],
)  # fmt: skip
def test_values_and_errors_are_those_of_typer(words: str) -> None:
    line = ["try-it", *words.split()]
    with redirect_stdout(io.StringIO()) as quick_output:
        quick = outcome(line, is_quick=True)
    with redirect_stdout(io.StringIO()) as output:
        assert quick == outcome(line, is_quick=False)
    assert quick_output.getvalue() == output.getvalue()


def test_a_file_that_cannot_be_read_is_refused_by_typer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setattr("os.access", lambda *_: False)
    assert outcome(["try-it", "x", "--file", str(file)], is_quick=True)[1].startswith("BadParameter")
