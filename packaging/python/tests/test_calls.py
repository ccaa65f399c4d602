"""Tables beside the program's own files, inputs as the program understood them, drawing."""

import ast
import csv
import json
import tomllib
from pathlib import Path

import polars
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


def test_results_are_the_tidy_table_of_the_report(chosen):
    verdict, out = chosen
    assert figures(verdict.results) == results(out)
    assert whichfs.Results.load(out).rows() == verdict.results.rows()
    with open(out / "results.csv", newline="", encoding="utf-8") as file:
        assert tuple(csv.DictReader(file).fieldnames) == whichfs.Results.columns
    row = verdict.results.rows()[0]
    assert row["card_state"] == "used" and row["partition_offset"] == 4 << 20 and row["mkfs"].startswith("m")
    assert len(verdict.results.to_pandas()) == len(verdict.results.rows())


def test_parquet_has_the_rows_and_types_of_the_table(chosen, tmp_path):
    table, file = chosen[0].results, tmp_path / "results.parquet"
    table.to_parquet(file)
    frame = polars.read_parquet(file)
    assert tuple(frame.columns) == whichfs.Results.columns and frame.rows(named=True) == table.rows()
    kinds = dict(frame.schema)
    assert (kinds["value"], kinds["failed"], kinds["seed"]) == (polars.Float64, polars.String, polars.UInt64)
    whichfs.Results([{**table.rows()[0], "seed": 2**64 - 1}]).to_parquet(file)
    assert polars.read_parquet(file)["seed"].to_list() == [2**64 - 1]
    with pytest.raises(Exception, match="conversion|type"):
        whichfs.Results([{**table.rows()[0], "value": "fast"}]).to_parquet(file)


def test_results_of_another_schema_are_refused(chosen, tmp_path):
    rows = json.loads((chosen[1] / "results.json").read_text())
    rows[0]["schema"] = 99
    (tmp_path / "results.json").write_text(json.dumps(rows))
    with pytest.raises(whichfs.Error, match="schema 99"):
        whichfs.Results.load(tmp_path)


def test_the_newest_of_several_runs_is_loaded(chosen, tmp_path):
    (tmp_path / "latest").symlink_to(chosen[1])
    assert whichfs.Verdict.load(tmp_path).document == whichfs.Verdict.load(chosen[1]).document
    assert whichfs.Results.load(tmp_path).rows() == chosen[0].results.rows()


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


@pytest.mark.parametrize("text", ["", "a", 'a"b\\', "\n\t\0\x7f\u2028é😀", "'''", "[x]\ny = 1 # z"])
def test_toml_holds_any_text(text):
    table = {"a": text, "t": (), "b": [1, 2.5, True], "s": {"x y": {text or "k": text}}, "l": [{"a": text}, {"b": [text]}]}
    assert tomllib.loads(toml({**table, "none": None, "empty": {}})) == {**table, "t": []}


CARD = whichfs.Card("c")


@pytest.mark.parametrize("call, document, wanted", [
    (lambda: whichfs.choose("c", "logger", candidates=("a", "b"), seeds=1, first_seed=0, cuts=2, size_mib=3, board="d",
                            clock="device", card_state="fresh", tree="t", wall_limit_s=4, jobs=5, fresh=True, store="s",
                            out="o", changes={"windows": True, "macos": False, "min_bytes": "1G"}, arguments=["--emit=e"]),
     "choose", "choose --card=c --for=logger --need=windows=yes --need=macos=no --need=min_bytes=1G --fs=a,b "
     "--seeds=1 --first-seed=0 --cuts=2 --board=d --clock=device --card-state=fresh --size=3M --tree=t --wall-limit=4 "
     "--jobs=5 --fresh --store=s --out=o --emit=e"),
    (lambda: whichfs.choose(CARD, workload=whichfs.Workload.command("x y"), out="o", fresh=False), "choose",
     "choose --card=c --command=x y --out=o"),
    (lambda: whichfs.choose(CARD, "n.toml", workload=whichfs.Workload.command("x"), out="o"), "choose",
     "choose --card=c --for=n.toml --command=x --out=o"),
    (lambda: whichfs.study(HERE, quick=True, seeds=1, cuts=2, budget="1m", only_fs="a", only_card=["b"], tree="t", jobs=3,
                           fresh=True, out="o", arguments=["--on=e"]),
     "study run", f"study run {HERE} --quick --seeds=1 --cuts=2 --budget=1m --fs=a --card=b --tree=t --jobs=3 "
     "--fresh --out=o --on=e"),
    (lambda: whichfs.crash(["a", "b"], CARD, workload="logger", cuts="all", faults=["x", "y"], mount="+sync", size_mib=16,
                           seed=2, board="d", jobs=3, fresh=True, out="o", arguments=["--at=5"]),
     "crash run", "crash run --card=c --workload=logger --fs=a,b --cuts=all --faults=x,y --mount=+sync --size=16M --seed=2 "
     "--board=d --jobs=3 --fresh --out=o --at=5"),
    (lambda: whichfs.probe("c", write="preserve", destroy="i", budget="1m", resume="r", save="s", plot="p", seed=2,
                           arguments=["--put-back"]),
     "probe", "probe c --write=preserve --destroy=i --budget=1m --resume=r --save=s --plot=p --seed=2 --put-back"),
    (lambda: whichfs.trials(["1f"], store="s"), "trial show", "trial show 1f --store=s"),
    (lambda: CARD.life(5, block_bytes=6, order="sequential", span_bytes=7, seed=8), "card life",
     "card life c --per-day=5 --block=6 --order=sequential --span=7 --seed=8"),
])
def test_the_arguments_of_a_call(fake, tmp_path, call, document, wanted):
    answer = json.dumps({"document": document, "schema": 1})
    fake(f"echo \"$*\" > {tmp_path}/arguments; echo '{answer}'")
    call()
    assert (tmp_path / "arguments").read_text() == wanted + " --json --verbose\n"


@pytest.mark.parametrize("words", ["--quiet", "-q", "--verbose", "-v"])
def test_the_caller_says_how_much_is_told(fake, tmp_path, words):
    fake(f"echo \"$*\" > {tmp_path}/arguments; echo '{json.dumps({'document': 'probe', 'schema': 1})}'")
    whichfs.probe("c", arguments=[words])
    assert (tmp_path / "arguments").read_text() == f"probe c {words} --json\n"


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
    assert tomllib.loads(card.text) == {"title": "My card", "interface": "sd", "capacity_bytes": 31_914_983_424,
                                        "year": 2016, "marks": ["class 10", "U1"]}
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


def test_the_programs_advice_comes_before_the_score(chosen):
    for name in ("ext4", "f2fs"):
        advice = {"candidate": name, "among": ["ext4", "f2fs"], "because": "it is so", "source": ""}
        verdict = whichfs.Verdict({**chosen[0].document, "advice": advice})
        assert (verdict.candidate, verdict.because) == (name, "it is so")
        assert f"Use {name}, because it is so" in str(verdict)
        coloured(verdict, verdict.plot())
    verdict = whichfs.Verdict({**chosen[0].document, "advice": None})
    assert (verdict.candidate, verdict.because) == (verdict.ranking[0].candidate, None)


def coloured(verdict, axes):
    """The answer alone has its colour."""
    green = {one.candidate: bar.get_facecolor()[1] > 1.5 * bar.get_facecolor()[0]
             for one, bar in zip(verdict.ranking, axes.patches)}
    assert [name for name in green if green[name]] == [verdict.candidate]


def test_a_plot_has_the_scores(chosen):
    verdict, _ = chosen
    axes = verdict.plot()
    ranking = verdict.ranking
    assert [bar.get_width() for bar in axes.patches] == [one.score for one in ranking]
    assert [tuple(line.get_xdata()) for line in axes.lines[:len(ranking)]] == [one.interval for one in ranking]
    assert [label.get_text() for label in axes.get_yticklabels()] == [one.candidate for one in ranking]
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
