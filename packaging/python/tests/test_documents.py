"""Every document that the package reads is valid by the program's own schema of it."""

import copy
import json
import os
import subprocess

import jsonschema
import pytest

import whichfs
from whichfs._files import toml
from whichfs._program import SCHEMAS, run


@pytest.fixture(scope="session")
def schemas(tmp_path_factory):
    """The program's schemas by name of the document."""
    out = tmp_path_factory.mktemp("schemas")
    subprocess.run([whichfs.program(), "manual", "schemas", "--out", out], check=True, capture_output=True)
    return {file.name[:-len(".schema.json")].replace("-", " "): json.loads(file.read_text())
            for file in out.iterdir()}


def crash_study(tmp_path):
    file = tmp_path / "cuts.toml"
    file.write_text(toml({"name": "cuts", "kind": "crash", "title": "Cuts", "source": "a test", "method": "As it is.",
                          "card": "a1-32gb", "board": "generic-1ghz", "filesystems": ["ext4"], "cuts": 2,
                          "partition_mib": 512, "mounts": [{"name": "default"}],
                          "faults": [{"name": "none", "faults": ()}],
                          "workloads": [{"name": "packages", "workload": "packages",
                                         "parameters": {"bytes": 16_000_000}}]}))
    return whichfs.study(file, progress=False)


def study(tmp_path, *arguments):
    file = tmp_path / "mini.toml"
    file.write_text(toml({
        "name": "mini", "kind": "performance", "title": "Mini", "source": "a test", "method": "As it is.",
        "cards": ["a1-32gb"], "boards": ["generic-1ghz"], "seeds": 1, "candidates": ["ext4"],
        "workloads": [{"name": "logs", "workload": "logger", "parameters": {"records": 200}}]}))
    return whichfs.study(file, arguments=arguments, progress=False)


@pytest.fixture(scope="session")
def cards(tmp_path_factory):
    """Two mounted filesystems, as cards of two readers; they need root and loop devices."""
    home, mounted = tmp_path_factory.mktemp("cards"), []
    for name in ("one", "two"):
        image, place = home / f"{name}.img", home / name
        place.mkdir()
        with open(image, "wb") as file:
            file.truncate(64 << 20)
        made = subprocess.run(["sh", "-c", 'mkfs.ext4 -q -F "$0" && mount -o loop "$0" "$1"', image, place],
                              capture_output=True, text=True)
        if made.returncode == 0:
            mounted.append(place)
    yield mounted
    for place in mounted:
        subprocess.run(["umount", place], check=True)


def fleet(tmp_path, cards):
    if len(cards) < 2:
        pytest.skip("root, loop devices and mkfs.ext4 are needed")
    return study(tmp_path, *(f"--on={card}" for card in cards), "--settle=0")


CALLS = {
    "choose": lambda chosen, _: chosen[0].document,
    "study run": lambda _, tmp_path: study(tmp_path).document,
    "study run crash": lambda _, tmp_path: crash_study(tmp_path).document,
    "study fleet": lambda _, tmp_path, cards: fleet(tmp_path, cards).document,
    "crash run": lambda *_: whichfs.crash("ext4", workload="packages", size_mib=16, cuts=2, progress=False).document,
    "store import": lambda *_: run(["store", "import", os.devnull], ["store import"]).document,
    "trial show": lambda chosen, _: whichfs.trials(chosen[0].trials[0]).documents[0],
    "probe": lambda *_: whichfs.probe(progress=False).document,
    "card list": lambda *_: whichfs.cards(),
    "card show": lambda *_: whichfs.Card("a1-32gb").figures().document,
    "card life": lambda *_: whichfs.Card("a1-32gb").life(1 << 30).document,
    "workload list": lambda *_: whichfs.workloads(),
    "workload show": lambda *_: whichfs.Workload("logger").show(),
}


def test_all_documents_are_called():
    # Errors are called in test_errors.py.
    assert set(CALLS) == set(SCHEMAS) - {"error"}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_the_document_is_valid(name, schemas, chosen, tmp_path, request):
    more = [request.getfixturevalue("cards")] if name == "study fleet" else []
    document = CALLS[name](chosen, tmp_path, *more)
    validator = jsonschema.Draft202012Validator(schemas[name])
    validator.validate(document)
    one, schema = (document[0], schemas[name]["items"]) if isinstance(document, list) else (document, schemas[name])
    assert schema["properties"]["schema"]["const"] in SCHEMAS[name]
    # The validator finds what is planted: each required field gone.
    for field in schema["required"]:
        broken = copy.deepcopy(one)
        del broken[field]
        assert not validator.is_valid([broken] if isinstance(document, list) else broken), field


def test_the_table_has_the_columns_of_its_schema(schemas, chosen):
    schema = schemas["results"]
    row = schema["$defs"][schema["items"]["$ref"].rsplit("/", 1)[1]] if "$ref" in schema["items"] else schema["items"]
    assert set(row["properties"]) == set(whichfs.Results.columns)
    rows = json.loads((chosen[1] / "results.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(rows)
    assert not validator.is_valid([{**rows[0], "value": "fast"}])


def test_a_study_with_cuts_has_rows(tmp_path):
    rows = crash_study(tmp_path).rows()
    assert {row["figure"] for row in rows} == {"broken", "lost", "fsck", "unfixable"}
    assert {(row["filesystem"], row["cuts"]) for row in rows} == {("ext4", 2)}


def test_a_fleet_has_rows_of_each_place_and_the_scatter_between_them(tmp_path, cards):
    found = fleet(tmp_path, cards)
    assert isinstance(found, whichfs.FleetResult) and found.ended == {}
    assert list(found.places) == [str(card) for card in cards]
    rows = found.rows()
    assert set(rows[0]) == set(whichfs.FleetResult.columns)
    values = {row["place"]: row["value"] for row in rows if row["metric"] == "log_append"}
    (one,) = [row for row in found.scatter.rows() if row["metric"] == "log_append"]
    assert (one["units"], one["lowest"], one["highest"]) == (2, min(values.values()), max(values.values()))
    assert one["mean"] == pytest.approx(sum(values.values()) / 2) and one["within"] is None
    assert len(found.to_pandas()) == len(rows) and found.scatter.to_polars().height == len(found.scatter.rows())
    assert {row["card"] for row in found.results.rows()} == {row["card"] for row in rows}
    # A run that ended early is told; one place alone is a study as ever.
    ended = {**found.document, "places": [{**found.document["places"][0], "ended": "no power"}]}
    assert whichfs.FleetResult(ended).ended == {str(cards[0]): "no power"}
    assert isinstance(study(tmp_path, f"--on={cards[0]}", "--settle=0"), whichfs.StudyResult)
