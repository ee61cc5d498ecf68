"""Commands that other packages add to the command line."""

from types import SimpleNamespace

import pytest
import typer

from rdgp.cli import Json, _app, main, tell


def add_greeting(app: typer.Typer) -> None:
    @app.command(epilog="Example: rdgp greet Ada")
    def greet(name: str, as_json: Json = False) -> None:
        """Greet somebody."""
        tell(f"hello {name}", {"name": name}, as_json)


def add_nothing(app: typer.Typer) -> None:
    raise ImportError("this needs greetings; run: pip install greetings")


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two packages add commands, of which the first fails."""
    points = [
        SimpleNamespace(name="part", load=lambda: add_nothing),
        SimpleNamespace(name="greet", load=lambda: add_greeting),
    ]
    monkeypatch.setattr(_app, "entry_points", lambda group: points if group == "rdgp.commands" else [])
    monkeypatch.setattr(_app.app, "registered_commands", list(_app.app.registered_commands))
    _app._add_plugins()


@pytest.mark.usefixtures("plugins")
def test_a_package_adds_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["greet", "Ada"]) == 0
    assert capsys.readouterr().out == "hello Ada\n"
    assert main(["greet", "Ada", "--json"]) == 0
    assert capsys.readouterr().out == '{"name": "Ada"}\n'
    assert main(["--help"]) == 0
    assert "Greet somebody" in capsys.readouterr().out


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize("arguments", [[], ["--help"], ["anything", "--option", "1"]])
def test_a_command_that_cannot_be_added_says_why(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["part", *arguments]) == 2
    assert capsys.readouterr() == ("", "rdgp: this needs greetings; run: pip install greetings\n")
