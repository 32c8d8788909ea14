"""What binds the stored runs to the code: platform key, canaries, attestations, and the command that checks them."""

import dataclasses
import functools
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from spaql.paper import bench
from spaql.paper.cli import main
from spaql.paper.runs import attestations, canaries, provenance, store, verify
from spaql.paper.runs.errors import Damaged
from spaql.paper.runs.provenance import default_store, platform_key
from spaql.paper.runs.runner import run
from spaql.paper.studies import make_jobs, study

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind != "trpo" else pytest.mark.long) for kind in canaries.KINDS]
)
def test_canaries(kind, faults):
    """All of them but for the textbook's: most of what those take is compiling, so that a system is drawn anew."""
    if kind == "trpo":
        pytest.importorskip("sb3_contrib")
    known, here = canaries.known_canaries(default_store(), kind), canaries.KINDS[kind].canaries
    if known is None:
        key = platform_key(canaries.KINDS[kind].family)
        study = " --study trpo" if kind == "trpo" else ""
        pytest.skip(f"no canaries are stored for the platform key {key}: run spaql verify --record{study}")
    assert known.keys() == here.keys()
    rng, count = faults
    left_out = rng.choice(canaries.PAPERS) if kind == "textbook" and count < len(here) else None
    changed = [name for name, run in here.items() if name.split(", ")[-1] != left_out and run() != known[name]]
    assert not changed, f"the numbers changed: raise NUMERICS or undo ({'; '.join(changed)})"


def test_the_canaries_of_this_machine_are_stored_with_the_versions_of_the_numbers():
    stored = canaries.load_all(default_store())
    assert set(stored) == {"numerics", *canaries.KINDS}
    for kind, (family, _) in canaries.KINDS.items():
        assert stored["numerics"][kind] == provenance.NUMERICS[family], "run spaql verify --record"
        assert all(re.fullmatch("[0-9a-f]{16}", digest) for known in stored[kind].values() for digest in known.values())


def test_a_tables_canary_is_the_same_where_numpys_arctanh_ends_in_another_digit(monkeypatch):
    system = "CartPole-v0"
    policy = canaries.train_canary("SPAQL", system, "paper").policy
    before, exact = canaries.table_digest(policy, system), np.arctanh
    monkeypatch.setattr(np, "arctanh", lambda x: np.nextafter(exact(x), 0.0))
    assert canaries.table_digest(policy, system) == before
    monkeypatch.setattr(np, "arctanh", lambda x: exact(x) * (1.0 + 1e-9))
    assert canaries.table_digest(policy, system) != before


def put(monkeypatch, **digests):
    """Let the canaries of some kinds have these digests."""
    for kind, found in digests.items():
        made = {name: functools.partial(str, digest) for name, digest in found.items()}
        monkeypatch.setitem(canaries.KINDS, kind, canaries.KINDS[kind]._replace(canaries=made))


def test_a_changed_number_a_new_key_and_another_version(tmp_path, monkeypatch):
    digests = {"one": "a", "two": "b"}
    put(monkeypatch, agents=digests)
    assert canaries.changed_canaries(tmp_path, "agents") is None
    canaries.add_canaries(tmp_path, "agents", canaries.compute_canaries("agents", False))
    assert canaries.changed_canaries(tmp_path, "agents") == []
    digests |= {"two": "c", "three": "d"}
    put(monkeypatch, agents=digests)
    assert canaries.changed_canaries(tmp_path, "agents") == ["three", "two"]
    with monkeypatch.context() as patch:
        patch.setattr(provenance, "elementary_key", lambda: "elsewhere")
        assert canaries.changed_canaries(tmp_path, "agents") is None
        canaries.add_canaries(tmp_path, "agents", digests)
        assert canaries.changed_canaries(tmp_path, "agents") == []
    assert set(canaries.load_all(tmp_path)["agents"]) == {"elsewhere", platform_key()}
    monkeypatch.setitem(provenance.NUMERICS, "spaql", 2)
    assert canaries.changed_canaries(tmp_path, "agents") is None
    canaries.add_canaries(tmp_path, "agents", digests)
    assert list(canaries.load_all(tmp_path)["agents"]) == [platform_key()]


def test_the_platform_key_is_the_same_in_another_process():
    code = "from spaql.paper.runs.provenance import platform_key; print(platform_key())"
    other = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    assert re.fullmatch("[0-9a-f]{12}", other)
    assert other == platform_key()


@pytest.mark.long
def test_the_platform_key_of_trpo_names_torch():
    torch = pytest.importorskip("torch")
    assert platform_key("trpo").startswith(f"{platform_key()}, torch {torch.__version__}, ")


# ---------------------------------------------------------------------------------------------------------------------
# Samples and verdicts


def test_a_sample_has_one_agent_of_each_group_or_is_spread_over_them():
    jobs = study("long") + study("xi") + study("ablation")
    sample = verify.stratified(jobs)
    groups = {job.group() for job in jobs}
    assert len(sample) == len(groups) == 181
    assert {job.group() for job in sample} == groups
    assert sample == verify.stratified(jobs) != verify.stratified(jobs, seed=1)
    assert len({job.group() for job in verify.stratified(jobs, 10)}) == 10
    twice = verify.stratified(jobs, 2 * 181)
    assert len(set(twice)) == 2 * 181
    assert verify.stratified([]) == []


@pytest.fixture
def small(tmp_path):
    """A folder with twelve short agents of each of two groups."""
    jobs = make_jobs(["SPAQL", "Random"], ["CartPole-v0"], [20], 12, 15, 5, fresh=50)
    run(jobs, store=tmp_path, progress_bar=False)
    return jobs, tmp_path


def other_bits(folder, jobs, change):
    for job in jobs:
        record = store.load_record(folder, job)
        record.history["rewards"] += change
        store.save_record(folder, record)


def test_the_same_bits(small):
    jobs, folder = small
    (verdict,) = verify.verify(jobs, folder, progress_bar=False)
    assert (verdict.sampled, verdict.same_bits, verdict.expected, verdict.sound) == (2, 2, False, True)
    assert str(verdict) == "the same bits"
    # From now on machines like this one must give these bits.
    attestations.attest(folder, {"spaql": verdict.entry()})
    other_bits(folder, jobs, 1e-9)
    (verdict,) = verify.verify(jobs, folder, progress_bar=False)
    assert (verdict.same_bits, verdict.expected, verdict.sound, verdict.agreement) == (0, True, False, None)
    assert "the numbers changed" in str(verdict)


@pytest.mark.parametrize(("change", "sound"), [(1e-9, True), (60.0, False)])
def test_other_bits_on_a_new_platform_are_judged_by_statistics(small, change, sound):
    jobs, folder = small
    other_bits(folder, jobs[:12], change)
    (verdict,) = verify.verify(jobs, folder, progress_bar=False)
    assert (verdict.sampled, verdict.same_bits, verdict.expected, verdict.sound) == (2, 1, False, sound)
    assert verdict.agreement.agents.tolist() == [10]
    assert str(verdict) == ("other bits, the statistics agree" if sound else "other bits, and the statistics disagree")


def test_groups_that_differ_in_their_rules_are_not_mixed():
    made = [make_jobs(["SPAQL"], ["CartPole-v0"], [20], 3, 5, 2, rules=r, fresh=5) for r in ("paper", "released")]
    records = run(made[0] + made[1], store=None, progress_bar=False)
    assert verify.agreement(records, records).agents.tolist() == [3, 3]


def test_the_command_verifies_records_and_fails(tmp_path, monkeypatch, capsys):
    shutil.copy(ROOT / "results" / "agents.parquet", tmp_path)
    put(monkeypatch, agents={"one": "a"}, policies={"two": "b"}, repaired={}, textbook={})
    command = ["verify", "--store", str(tmp_path), "--agents", "2", "--study", "xi"]
    main(command)
    assert "0.1% of the 2,400 stored agents" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agents.parquet"]  # nothing is written unless asked for
    main([*command, "--record"])
    (entry,) = attestations.load_attestations(tmp_path)
    assert entry["families"]["spaql"] == {
        "platform": platform_key(), "stored": 2400, "sampled": 2, "same_bits": 2, "verdict": "the same bits"
    }  # fmt: skip
    assert canaries.known_canaries(tmp_path, "agents") == {"one": "a"}
    assert "agents are stored" in capsys.readouterr().out
    put(monkeypatch, agents={"one": "c"})
    with pytest.raises(SystemExit, match=re.escape("canaries of agents changed (one): raise NUMERICS or undo")):
        main(command)
    with pytest.raises(SystemExit, match="nothing to verify"):
        main(["verify", "--store", str(tmp_path / "nowhere")])


def test_all_agents_are_verified_where_an_interrupted_verification_was(small, monkeypatch):
    jobs, folder = small
    journal = folder / "verified.jsonl"
    monkeypatch.setattr(verify, "AT_ONCE", 5)

    def interrupted(part, *rest, **options):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(part)
        return run(part, *rest, **options)

    calls = []
    monkeypatch.setattr(verify, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        verify.verify(jobs, folder, len(jobs), progress_bar=False, journal=journal)
    with journal.open("a") as file:
        file.write('["half a li')  # as a kill leaves it
    calls = []
    monkeypatch.setattr(verify, "run", lambda part, *rest, **options: calls.append(part) or run(part, *rest, **options))
    (verdict,) = verify.verify(jobs, folder, len(jobs), progress_bar=False, journal=journal)
    assert sum(map(len, calls)) == len(jobs) - 10
    assert (verdict.stored, verdict.sampled, verdict.same_bits) == (len(jobs),) * 3


def test_verify_all_records_its_outcome(small, monkeypatch):
    jobs, folder = small
    monkeypatch.setattr("spaql.paper.studies.study", lambda *given: jobs[:3])
    monkeypatch.setenv("SPAQL_RUNS", str(folder / "runs"))
    put(monkeypatch, agents={}, policies={}, repaired={}, textbook={})
    main(["verify", "--all", "--study", "long", "--store", str(folder)])
    assert attestations.load_attestations(folder)[0]["families"]["spaql"]["sampled"] == 3


WRONG = ["[]", "{}", "1", "{", '{"numerics": {"agents": 1}}', '{"numerics": 3}',
         '{"numerics": {"agents": 1}, "agents": []}',
         '{"numerics": {"agents": 1}, "agents": {"key": 1}}', "[" * 100_000]  # fmt: skip


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_a_file_of_canaries_or_attestations_of_another_form_is_an_error_in_words(tmp_path, text):
    (tmp_path / "canaries.json").write_text(text)
    (tmp_path / "attestations.jsonl").write_text(text)
    for load in (canaries.load_all, attestations.load_attestations):
        with pytest.raises(Damaged, match="repository again"):
            load(tmp_path)


def test_the_stored_attestations():
    entries = attestations.load_attestations(default_store())
    assert len(entries) >= 2
    assert entries[0]["commit"].startswith("7fcd649")
    for entry in entries:
        assert set(entry) == {"date", "commit", "numerics", "versions", "machine", "families"}
        assert all(found["same_bits"] <= found["sampled"] for found in entry["families"].values())
    assert attestations.bits_expected(default_store(), "spaql", entries[0]["families"]["spaql"]["platform"])
    assert not attestations.bits_expected(default_store(), "trpo", entries[0]["families"]["trpo"]["platform"])


def test_origins_are_what_the_processes_wrote_that_computed_the_agents():
    """Eighteen agents carry the fingerprint of a module that was changed after them; their commits are right."""
    jobs = [job for job in study("trpo") if (job.algorithm, job.system) == ("TRPO tuned", "CartPole-v0")]
    origins = [store.load_origin(default_store(), job) for job in jobs]
    assert {origin["code"] for origin in origins} == {"26ea815acf1e7743"}
    assert sorted(commits(origins).values()) == [2, 4, 14]
    assert all("numerics" not in origin for origin in origins)  # of the time before there were versions


def commits(origins):
    return {commit: sum(o["commit"] == commit for o in origins) for commit in {o["commit"] for o in origins}}


def test_a_field_with_a_default_that_comes_later_changes_no_identity():
    later = dataclasses.make_dataclass("Job", [("noise", float, 0.0)], bases=(store.Job,), frozen=True)
    job = study("ablation")[0]
    assert later(**vars(job)).identity() == job.identity()
    assert later(**vars(job) | {"noise": 1.0}).identity() != job.identity()


# ---------------------------------------------------------------------------------------------------------------------
# The bench


def test_the_bench_writes_nothing_unless_told_to(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bench, "rows", lambda: iter([("a step", "1.0×", "≤ 2×", True)]))
    monkeypatch.setattr(bench, "default_store", lambda: tmp_path / "results")
    main(["bench"])
    assert "| a step | 1.0× | ≤ 2× | holds |" in capsys.readouterr().out
    assert not (tmp_path / "results").exists()
    main(["bench", "--record"])
    kept = json.loads((tmp_path / "results" / "bench.json").read_text(encoding="utf-8"))
    assert kept["rows"] == [["a step", "1.0×", "≤ 2×", True]]
