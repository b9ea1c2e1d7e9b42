from __future__ import annotations

from pathlib import Path

import pytest

from sparktui.profile import find
from sparktui.profile.problems import ProfileError
from tests.profile.make import write


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory whose user has an empty config directory beside it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def own(here: Path) -> Path:
    return here / "profiles"


def users(here: Path) -> Path:
    return here.parent / "config" / "sparktui" / "profiles"


def names() -> list[str]:
    return [entry.name for entry in find.all_profiles()]


def test_the_shipped_profiles_are_found_and_good(here: Path) -> None:
    entries = find.all_profiles()
    assert {"demo", "cpu-tiny"} <= {entry.name for entry in entries}
    assert [entry.error for entry in entries] == [None] * len(entries)


def test_a_name_is_the_profiles_own_and_not_its_files(here: Path) -> None:
    path = write(users(here), "name: lightning\nmodel: m", "x.yml")
    assert find.find("lightning") == path
    with pytest.raises(ProfileError):
        find.find("x")


def test_the_first_of_a_name_wins(here: Path) -> None:
    write(users(here), "name: demo\nmodel: users", "a.yaml")
    path = write(own(here), "name: demo\nmodel: own", "b.yaml")
    demos = [entry for entry in find.all_profiles() if entry.name == "demo"]
    assert [entry.path for entry in demos] == [path]
    assert find.find("demo") == path


def test_a_folder_that_is_two_of_the_places_counts_once(here: Path) -> None:
    own(here).symlink_to(find.folders()[-1])
    assert names().count("demo") == 1


def test_a_broken_file_hides_no_good_one(here: Path) -> None:
    write(own(here), "model: m\nport: x", "bad.yaml")
    write(own(here), b"\xff\xfe", "binary.yaml")
    write(own(here), "model: m", "good.yaml")
    write(own(here), "not a profile", "notes.txt")
    (own(here) / "folder.yaml").mkdir()
    (own(here) / "dangling.yaml").symlink_to("nowhere")
    entries = {entry.name: entry for entry in find.all_profiles()}
    assert {name for name, entry in entries.items() if entry.error} == {"bad", "binary", "folder", "dangling"}
    assert {"good", "demo", "cpu-tiny"} <= entries.keys()
    assert "notes" not in entries
    assert str(entries["bad"].error) == f"{own(here) / 'bad.yaml'}:2: port: expected an integer, got 'x'"


def test_a_broken_copy_is_found_before_the_good_one_that_it_replaces(here: Path) -> None:
    broken = write(own(here), "name: demo\nport: x", "mine.yaml")
    assert find.find("demo") == broken
    assert names().count("demo") == 2


def test_a_good_file_is_found_before_a_broken_one_beside_it(here: Path) -> None:
    write(own(here), "name: a\nport: x", "1.yaml")
    good = write(own(here), "name: a\nmodel: m", "2.yaml")
    assert find.find("a") == good


def test_two_of_a_name_in_one_folder_are_errors_and_claim_it(here: Path) -> None:
    write(own(here), "name: demo\nmodel: m", "1.yaml")
    write(own(here), "model: m\nname: demo", "2.yaml")
    demos = [entry for entry in find.all_profiles() if entry.name == "demo"]
    assert [str(entry.error).removeprefix(f"{own(here)}/") for entry in demos] == [
        "1.yaml:1: name: 'demo' is also the name of 2.yaml",
        "2.yaml:2: name: 'demo' is also the name of 1.yaml",
    ]
    with pytest.raises(ProfileError, match="is also the name of"):
        find.find("demo")


def test_a_missing_name_gets_a_suggestion_or_the_list(here: Path) -> None:
    with pytest.raises(ProfileError, match=r"there is no profile 'cpu_tny'; did you mean 'cpu-tiny'\?"):
        find.find("cpu_tny")
    with pytest.raises(ProfileError, match=r"there is no profile 'zzz' \(there are cpu-tiny, demo"):
        find.find("zzz")


@pytest.mark.parametrize("target", ["sub/p.yaml", "./sub/p.yaml", "{here}/sub/p.yaml", "~/p.yaml"])
def test_a_path_is_taken_as_it_is(here: Path, target: str) -> None:
    write(here / "sub", "model: m", "p.yaml")
    write(here.parent / "home", "model: m", "p.yaml")
    assert find.find(target.format(here=here)).samefile(
        here.parent / "home" / "p.yaml" if target.startswith("~") else here / "sub" / "p.yaml"
    )


def test_a_path_to_nothing_is_an_error(here: Path) -> None:
    with pytest.raises(ProfileError, match=r"gone\.yaml: there is no such file"):
        find.find("gone.yaml")


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("demo", ("demo", None)),
        ("demo:off", ("demo", "off")),
        ("demo:off,k2", ("demo", "off,k2")),
        ("p.yaml:off", ("p.yaml", "off")),
        ("a:b/p.yaml", ("a:b/p.yaml", None)),
        ("odd:name.yaml", ("odd:name.yaml", None)),
    ],
)
def test_a_target_splits_at_its_last_colon(here: Path, target: str, parts: tuple[str, str | None]) -> None:
    write(here, "model: m", "odd:name.yaml")
    assert find.split_target(target) == parts


@pytest.mark.parametrize("target", ["demo:", ":off", ":"])
def test_a_target_with_an_empty_part_is_an_error(here: Path, target: str) -> None:
    with pytest.raises(ProfileError, match="expected PROFILE or PROFILE:VARIANT"):
        find.split_target(target)


def test_an_installed_package_ships_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site-packages" / "sparktui"
    write(package / "shipped_profiles", "model: m", "p.yaml")
    write(tmp_path / "site-packages" / "profiles", "model: m", "someone-elses.yaml")
    monkeypatch.setattr(find, "__file__", str(package / "profile" / "find.py"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert names() == ["p"]
