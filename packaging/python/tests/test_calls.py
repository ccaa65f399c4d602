"""Tables beside the program's own files, inputs as the program understood them, drawing."""

import ast
import csv
import sys
from pathlib import Path

import pytest

import whichfs
from whichfs._files import toml

HERE = Path(__file__).resolve().parent


def results(directory):
    """The figures of the program's own results.csv."""
    with open(directory / "results.csv", newline="", encoding="utf-8") as file:
        return {(row["candidate"], row["metric"], row["seed"], row["unit"], row["trial"]): float(row["value"])
                for row in csv.DictReader(file) if not row["failed"]}


def figures(table):
    """The figures of a table, as `results` has them."""
    return {(row["candidate"], row["metric"], str(row["seed"]), row["unit"], row["trial"]): row["value"]
            for row in table.rows()}


def test_a_verdict_has_the_figures_of_results_csv(chosen):
    verdict, out = chosen
    wanted = results(out)
    assert figures(verdict) == pytest.approx(wanted, rel=1e-12) and len(wanted) > 50


def test_trials_have_the_figures_of_results_csv(chosen):
    verdict, out = chosen
    trials = whichfs.trials(verdict)
    assert figures(trials) == results(out)
    assert len(trials) == len(verdict.trials) == 4
    assert {one["identity"]["parameters"]["records"] for one in trials.documents} == {300}
    assert whichfs.trials(verdict.trials[0][:12]).documents == trials.documents[:1]


def test_frames_have_the_rows(chosen):
    verdict, _ = chosen
    pandas, polars, rows = verdict.to_pandas(), verdict.to_polars(), verdict.rows()
    assert tuple(pandas.columns) == tuple(polars.columns) == whichfs.Verdict.columns == tuple(rows[0])
    assert len(pandas) == polars.height == len(rows)
    assert list(pandas["value"]) == polars["value"].to_list() == [row["value"] for row in rows]


def test_a_failed_trial_is_one_row(chosen):
    document = whichfs.trials(chosen[0].trials[0]).documents[0]
    outcome = {**document["outcome"], "status": {"status": "failed", "reason": "no space left"}}
    rows = whichfs.Trials([{**document, "outcome": outcome}]).rows()
    assert [(row["failed"], row["metric"]) for row in rows] == [("no space left", None)]


def test_a_need_as_the_program_understood_it(chosen):
    document = chosen[0].document
    shares = {one["metric"]: one["share"] for one in document["metrics"] if one["share"]}
    assert shares == {"log_append": 0.75, "mount": 0.25}
    assert (document["needs"], document["title"]) == ("sensor", "A sensor")
    assert document["baseline"]["candidate"] == "ext4"
    assert list(chosen[0].excluded) == ["vfat"], "the rule leaves out who has no journal"
    assert {one.candidate for one in chosen[0].ranking} == {"ext4", "f2fs"}


def test_a_wrong_need_is_refused():
    for need in (whichfs.Need("x", "logger", {"nope": 1}), whichfs.Need("x", "nope", {"mount": 1}),
                 whichfs.Need("x", whichfs.Workload("logger", {"nope": 1}), {"mount": 1})):
        with pytest.raises(whichfs.Error, match="nope") as caught:
            whichfs.choose(need=need, progress=False)
        assert caught.value.kind == "input"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is newer")
@pytest.mark.parametrize("text", ["", "a", 'a"b\\', "\n\t\0\x7f\u2028é😀", "'''", "[x]\ny = 1 # z"])
def test_toml_holds_any_text(text):
    import tomllib
    table = {"a": text, "t": (), "b": [1, 2.5, True], "s": {"x y": {text or "k": text}}, "l": [{"a": text}, {"b": [text]}]}
    assert tomllib.loads(toml({**table, "none": None, "empty": {}})) == {**table, "t": []}


def test_own_workloads():
    command = whichfs.choose(workload=whichfs.Workload.command("seq 1000 > a; cp a b"), candidates=["ext4"],
                             seeds=1, progress=False)
    assert {"command", "command_sync"} <= {row["metric"] for row in command.rows()}
    job = whichfs.Workload.fio("[log]\nrw=write\nbs=64k\nsize=1m\n")
    need = whichfs.Need("mine", job, {"fio_job": 1})
    for verdict in (whichfs.choose(workload=job, candidates=["ext4"], seeds=1, progress=False),
                    whichfs.choose(need=need, candidates=["ext4"], seeds=1, progress=False)):
        assert [row["value"] for row in verdict.rows() if row["metric"] == "fio_job"][0] > 0
    with pytest.raises(whichfs.Error, match="weights"):
        whichfs.choose(workload=whichfs.Workload("logger"), progress=False)
    with pytest.raises(whichfs.Error, match="does not go"):
        whichfs.crash("ext4", workload=job, progress=False)


def test_a_workload_shows_its_parameters():
    assert "records" in {one["name"] for one in whichfs.Workload("logger").show()["parameters"]}
    assert "logger" in {one["name"] for one in whichfs.workloads()}


def test_a_known_card():
    card = whichfs.Card.known("My card", "sd", 31_914_983_424, year=2016, marks=["class 10", "U1"])
    table = card.figures()
    assert (table.document["name"], table.document["basis"]) == ("my-card", "inferred")
    values = {row["figure"]: row["value"] for row in table.rows()}
    assert values["geometry.capacity_bytes"] == 31_914_983_424
    observed = {"operation": "write", "order": "sequential", "block_bytes": 524_288, "bytes_per_s": -1}
    with pytest.raises(whichfs.Error) as caught:
        whichfs.Card.known("Bad", "sd", 31_914_983_424, observed=[observed]).figures()
    assert caught.value.kind == "input"


def test_a_life():
    life = whichfs.Card("a1-32gb").life(2 << 30)
    assert sorted(life.years) == [0.1, 0.25, 0.75, 0.9]
    assert [row["years"] for row in life.rows()] == sorted(life.years.values())
    assert life.write_amplification_card > 1
    assert whichfs.Card("a1-32gb").life(1 << 30).years[0.1] > life.years[0.1]


def test_a_plot_has_the_scores(chosen):
    verdict, _ = chosen
    axes = verdict.plot()
    ranking = verdict.ranking
    assert [bar.get_width() for bar in axes.patches] == [one.score for one in ranking]
    assert [tuple(line.get_xdata()) for line in axes.lines[:len(ranking)]] == [one.interval for one in ranking]
    assert [label.get_text() for label in axes.get_yticklabels()] == [one.candidate for one in ranking]
    colours = {one.candidate: bar.get_facecolor() for one, bar in zip(ranking, axes.patches)}
    assert [name for name in colours if colours[name] == colours[verdict.candidate]] == [verdict.candidate]
    assert verdict.plot(axes) is axes
    assert axes.get_xlim()[1] > max(one.interval[1] for one in ranking)


def test_crash_gives_each_cut():
    operations = [{"op": "create", "path": "a", "size": 4096, "content": {"generated": {"level": 4, "seed": 1}}}]
    result = whichfs.crash(["ext4"], workload=whichfs.Workload.operations(operations), cuts=3, progress=False)
    rows = {row["figure"]: row for row in result.rows()}
    assert rows["broken"]["cuts"] == 3 and rows["broken"]["count"] == result.broken == 0
    cuts = result.cuts().rows()
    assert [row["number"] for row in cuts] == [0, 1, 2]
    assert sum(result.conditions["ext4"].values()) == 3
    assert result.to_pandas().shape == (6, 9) and result.cuts().to_polars().height == 3


def test_a_studys_figures_are_those_of_results_csv(tmp_path):
    file = tmp_path / "mini.toml"
    file.write_text(toml({
        "name": "mini", "kind": "performance", "title": "Mini", "source": "a test", "method": "As it is.",
        "cards": ["a1-32gb"], "boards": ["generic-1ghz"], "seeds": 2, "candidates": ["ext4", "f2fs"],
        "workloads": [{"name": "logs", "workload": "logger", "parameters": {"records": 200}}]}))
    result = whichfs.study(file, out=tmp_path / "out", progress=False)
    own = {(row["candidate"], row["metric"], str(row["seed"]), row["unit"]): row["value"] for row in result.rows()}
    wanted = {key[:-1]: value for key, value in results(tmp_path / "out").items()}
    assert own and own == {key: wanted[key] for key in own}
    assert {row["workload"] for row in result.rows()} == {"logs"} and not result.failed


def test_probe_gives_findings():
    result = whichfs.probe("a1-32gb", progress=False)
    assert result["au_bytes"] == 4 << 20 and result["write_mb_s"] is None
    rows = {row["figure"]: row for row in result.rows()}
    assert "writing" in rows["write_mb_s"]["reason"] and rows["au_bytes"]["confidence"] > 0.9
    assert len(rows) == 30 and result.to_polars().height == 30


def test_python_3_8_can_read_it():
    for file in HERE.parent.glob("whichfs/*.py"):
        ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 8))


def test_every_public_name_has_a_docstring():
    for name in whichfs.__all__:
        one = getattr(whichfs, name)
        assert one.__doc__, name
        for member, value in vars(one).items() if isinstance(one, type) else ():
            if not member.startswith("_") and callable(getattr(value, "fget", value)):
                assert (getattr(value, "fget", value)).__doc__, f"{name}.{member}"
