"""The conformance cases: the package, and the reference that shares no code with it, give the answers of the cases."""

import json
import re
import subprocess
import sys
import tarfile
from collections import Counter
from itertools import pairwise
from pathlib import Path

import archive
import cordwood_python
import foreign
import mutants
import pure_python
import pytest
import suite

DOCS = Path(__file__).parents[2] / "docs" / "format"
RUST_TESTS = Path(__file__).parents[2] / "rust" / "cordwood" / "tests"
PAGES = ("implement", "reading", "numbered", "packed", "damage")
CASES = suite.all_cases()
KNOWN = suite.known_in(Path(suite.__file__).parent / "known.txt")
"""The cases in which cordwood differs, and why."""


def rules():
    """The numbers of the rules of the pages: each starts a line of a table, or is printed bold."""
    pages = "".join((DOCS / f"{page}.md").read_text(encoding="utf-8") for page in PAGES)
    return re.findall(r"(?:^\| |\*\*)([A-Z]\d+[a-z]?)(?: |\*\*)", pages, re.MULTILINE)


def test_conformance_case_names_are_unique():
    names = [case["name"] for case in CASES]
    assert len(names) == len(set(names))


def test_every_rule_has_a_case_and_every_case_names_its_rules():
    assert all(case["rules"] for case in CASES)
    assert {rule for case in CASES for rule in case["rules"]} == set(rules())


def test_each_rule_is_stated_once():
    assert [rule for rule, count in Counter(rules()).items() if count > 1] == []


def test_each_case_mentioned_in_the_table_of_bugs_exists():
    table = (DOCS / "damage.md").read_text(encoding="utf-8").partition("\n## Bugs of other software")[2]
    named = re.findall(r'"([A-Z][^"|]{10,})"(?=[^|]*\|$)', table, re.MULTILINE)
    assert len(named) == 10
    assert {case["name"] for case in CASES} >= set(named)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*-cases.md")), ids=lambda page: page.stem)
def test_tests_and_cases_named_in_the_engine_tables_exist(page):
    sources = (RUST_TESTS / "leveldb_log_test.rs", *(RUST_TESTS / "engines").glob("*.rs"))
    words = set(re.findall(r"\w+", "".join(source.read_text(encoding="utf-8") for source in sources)))
    text = page.read_text(encoding="utf-8").partition("\n## Recovery modes")[0]
    rows = "".join(re.findall(r"^\| .*", text, re.MULTILINE))
    tests = {name.rpartition("::")[2] for name in re.findall(r"`([a-z0-9_:]{8,})`", rows)} - suite.SEVERITY.keys()
    assert len(tests) >= 5
    assert tests <= words, tests - words
    assert set(re.findall(r'the case "([^"]+)"', text)) <= {case["name"] for case in CASES}


HEADERS = {"rocksdb": 11, "recyclable": 11, "pebble": 19}
"""The longest header of each dialect in which it is not 7 bytes."""


def test_each_outcome_accounts_for_every_byte():
    """P1 to P3: between two spans there is at most the trailer of a block, which may be the end of the file."""
    checked = 0
    for case in CASES:
        if {"start", "end"} & case.keys() or "content" not in case:
            continue
        file_len = len(suite.content_of(case))
        grid = 7 if case.get("detected") == "wandb_old" else 0
        for policy, expected in case["expected"].items():
            is_listed = isinstance(expected["records"], list) and expected["end"][0] != "refused"
            if policy == "repair" or not is_listed or "regions" not in expected:
                continue
            longest = HEADERS.get(case.get("dialect") or case.get("detected"), 7)
            spans = [record[:2] for record in expected["records"]] + [region[1:] for region in expected["regions"]]
            for (_, end), (start, _) in pairwise([(0, 0), *sorted(spans), (file_len, file_len)]):
                block_end = end + (grid - end) % 32_768
                assert start in {end, block_end, min(block_end, file_len)}, (case["name"], policy, end, start)
                assert start == end or block_end - end < longest, (case["name"], policy, end, start)
            checked += 1
    assert checked > 800


def test_severities_match_the_docs():
    table = re.findall(r"^\| `(\w+)` \| (\w+) \|", (DOCS / "reading.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert dict(table) == suite.SEVERITY


def test_an_answer_without_records_or_content_is_reported_as_a_difference(tmp_path):
    case = next(case for case in CASES if "written" in case)
    found = {task.policy: suite.differences(task, {}) for task in suite.tasks_of(case, tmp_path)}
    assert found.pop("write") == ["content: none"]
    assert set(found) == {*case["expected"], "stop", "raise"}
    assert all(differences == ["records: none"] for differences in found.values())


GOOD = {"id": "ID", "dialects": ["leveldb"], "policies": ["skip"], "features": []}
ONE = "A FIRST ends a record that is not complete"
ONE_SALVAGED = "A flipped bit of a checksum"


def run(capsys, answers, *, names=(ONE,), known=None, must=False, timeout=10):
    """The status and the output of the suite, for a runner that answers `describe`, and then all other requests."""
    described, other = (f"print({text}, flush=True)" for text in answers)
    script = f"""
import json, os, sys, time
for line in sys.stdin:
    request = json.loads(line)
    describe = request["do"] == "describe"
    good = json.dumps({GOOD} | {{"id": request["id"]}})
    right = {{"id": request["id"]}}
    if describe:
        {described}
    else:
        {other}
"""
    status = suite.main([sys.executable, "-c", script], known, words=[*names], must=must, timeout=timeout)
    return status, capsys.readouterr().out


NO_ANSWER = 'json.dumps(right | {"records": []})'
NULLS = 'json.dumps(right | {"records": [[None, 9, 3, "2a94b2e9"]]})'


@pytest.mark.parametrize(
    ("answers", "status", "message"),
    [
        pytest.param(("'reading...\\n' + good", NO_ANSWER), 2, "is not the answer to the request 1", id="extra first"),
        pytest.param(("good", "'{\"debug\": 1}'"), 2, "is not the answer to the request 2", id="extra later"),
        pytest.param(("good", "'[]'"), 2, "a JSON object with its `id`: '[]'", id="no object"),
        pytest.param(("good", "json.dumps({'records': []})"), 2, "is not the answer to the request 2", id="no id"),
        pytest.param(
            ("good", 'json.dumps(right | {"id": 1})'), 2, "is not the answer to the request 2", id="an old id"
        ),
        pytest.param(("os._exit(1)", NO_ANSWER), 2, "does not describe itself: the runner ended", id="crash first"),
        pytest.param(("good", "os._exit(1)"), 2, "the runner ended, 5 times in a row", id="crash always"),
        pytest.param(("time.sleep(9)", NO_ANSWER), 2, "no answer within 0.5 seconds", id="no answer"),
        pytest.param(
            ("json.dumps(right)", NO_ANSWER), 2, "`dialects` of the answer to `describe`", id="describes none"
        ),
        pytest.param(("good.replace('leveldb', 'LevelDB')", NO_ANSWER), 2, '["LevelDB"]', id="unknown dialect"),
        pytest.param(("good", 'json.dumps(right | {"regions": None})'), 2, "`regions` must be", id="regions of null"),
        pytest.param(
            ("good", 'json.dumps(right | {"regions": [["torn_tail", 1, 2]]})'),
            2,
            "`regions` must be",
            id="short region",
        ),
        pytest.param(("good", NULLS), 2, "with null for all", id="some offsets are null"),
        pytest.param(("good.replace('skip', 'stop')", NO_ANSWER), 1, "expected [[0, 10", id="wrong answer"),
        pytest.param(
            ("good", 'json.dumps(right | {"unsupported": "skip"})'), 1, "which is no feature", id="unsupported"
        ),
        pytest.param(("good.replace('\"leveldb\"', '')", NO_ANSWER), 3, "no answer was compared", id="supports none"),
    ],
)
def test_a_broken_runner_gets_a_clear_message_and_exit_status(answers, status, message, capsys):
    names = () if "times in a row" in message else (ONE,)
    found, output = run(capsys, answers, names=names, timeout=0.5 if "0.5" in message else 10)
    assert message in output
    assert found == status, output
    assert "Traceback" not in output


def test_a_nonexistent_command_counts_as_a_broken_runner(capsys):
    assert suite.main(["/no/such/command"]) == 2
    assert "it does not start" in capsys.readouterr().out


def test_a_failure_message_identifies_the_case_and_shows_its_request_and_bytes(capsys):
    status, output = run(capsys, ("good", NO_ANSWER))
    assert status == 1
    for part in ("records-24 (must)", "records.json, rules A2", '"policy": "skip"', "54 bytes: 7d aa 5c 84"):
        assert part in output


def test_offsets_are_not_compared_if_a_reader_does_not_return_them(tmp_path):
    """Also those of records of which a case states only their number and a CRC."""
    checked = Counter()
    for number, case in enumerate(CASES):
        directory = tmp_path / str(number)
        directory.mkdir()
        for task in suite.tasks_of(case, directory):
            answer = pure_python.answer(task.request)
            if task.policy == "skip" and answer.get("records"):
                answer = {"records": [[None, None, *record[2:]] for record in answer["records"]]}
                assert suite.differences(task, answer) == []
                answer["records"][-1][2] += 1
                assert suite.differences(task, answer)
                checked[type(task.expected["records"])] += 1
    assert checked[dict] > 5
    assert checked[list] > 300


def test_the_skip_outcome_determines_the_outcomes_of_the_stop_and_raise_policies(tmp_path):
    """Where a case states them, they are those that are derived."""
    checked = Counter()
    for case in CASES:
        outcomes = case.get("expected", {})
        stated = {policy: outcomes[policy] for policy in ("stop", "raise") if policy in outcomes}
        file_len = len(suite.content_of(case)) if "content" in case else 0
        found = suite.derived({"skip": outcomes.get("skip")}, file_len, case.get("end")) if stated and file_len else {}
        for policy in stated.keys() & found.keys():
            task = suite.Task(case, policy, {"path": str(tmp_path), **case}, found[policy])
            answer = {"raised": [], **stated[policy]}
            answer["regions"] = [[*region, suite.SEVERITY[region[0]]] for region in answer["regions"]]
            if isinstance(answer["records"], list):
                assert suite.differences(task, answer) == [], (case["name"], policy)
                checked[policy] += 1
    assert checked["stop"] > 100
    assert checked["raise"] > 5


def test_conformance_case_ids_are_unique():
    ids = [case["id"] for case in CASES]
    assert len(ids) == len(set(ids))
    assert all(case["id"].rpartition("-")[0] + ".json" == case["file"] for case in CASES)


def test_salvage_repair_and_detection_are_optional(tmp_path, capsys):
    levels = Counter(
        (task.policy, task.level) for task in suite.tasks_of(next(c for c in CASES if c["name"] == ONE), tmp_path)
    )
    assert levels == {("skip", "must"): 1, ("stop", "must"): 1, ("raise", "must"): 1, ("salvage", "may"): 1}
    none = ("good.replace('skip', 'salvage').replace('\"leveldb\"', '')", NO_ANSWER)
    assert run(capsys, none, must=True)[0] == 3


def test_salvage_must_return_every_record_that_the_skip_policy_returns(capsys):
    """S10."""
    found = {
        "all": [[[0, 10, 3, "2a94b2e9"], [10, 20, 3, "00000001"]], 0],
        "without offsets": [[[None, None, 3, "2a94b2e9"]], 0],
        "none": [[], 1],
        "another": [[[0, 10, 3, "00000001"]], 1],
    }
    for name, (records, status) in found.items():
        salvager = ("good.replace('skip', 'salvage')", f"json.dumps(right | {{'records': {records}}})")
        assert run(capsys, salvager, names=(ONE_SALVAGED,))[0] == 1, name
        must, output = run(capsys, salvager, names=(ONE_SALVAGED,), must=True)
        assert must == status, (name, output)
        assert ("which `skip` returns (S10)" in output) is bool(status)


def test_a_known_difference_passes_but_an_outdated_entry_fails(capsys, tmp_path):
    file = tmp_path / "known.txt"
    file.write_text(f"X1: {ONE}\n")
    assert run(capsys, ("good", NO_ANSWER), known=suite.known_in(file))[0] == 0
    assert suite.main([sys.executable, pure_python.__file__], suite.known_in(file), words=[ONE]) == 1
    assert "no answer differs" in capsys.readouterr().out


def test_archived_conformance_suite_is_self_contained(tmp_path):
    archived = archive.written(tmp_path)
    with tarfile.open(archived) as found:
        found.extractall(tmp_path / "alone", filter="data")
    alone = tmp_path / "alone" / archive.NAME
    tasks = json.loads((alone / "tasks.json").read_text(encoding="utf-8"))
    assert {task["id"] for task in tasks} == {case["id"] for case in CASES}
    assert all((alone / task["request"]["path"]).exists() for task in tasks if task["request"]["do"] == "read")
    assert {file.name for file in alone.iterdir()} >= {"LICENSE-MIT", "LICENSE-APACHE", "README.md"}
    # The standard library only; the suite asks for all cases, and each difference has its message.
    script = f"""
import json, sys
for line in sys.stdin:
    print(json.dumps({{**{GOOD}, "id": json.loads(line)["id"], "records": []}}), flush=True)
"""
    command = [sys.executable, "-I", "-S", "suite.py", sys.executable, "-I", "-S", "-c", script]
    done = subprocess.run(command, cwd=alone, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert not done.stderr
    assert re.search(r"^suite 2: \d+ equal, \d+ different$", done.stdout, re.MULTILINE)


def test_conformance_cases_catch_at_least_95_percent_of_mutations():
    files = [(mutants.ROOT / file).read_text(encoding="utf-8") for file in [*mutants.JAVASCRIPT, *mutants.PYTHON]]
    lines = {line.strip() for text in files for line in text.splitlines()}
    changed = {old for old, _ in mutants.reasons()}
    assert changed <= lines, "a line of a reader has changed: run conformance/mutants.py"
    shares = re.findall(r" ([\d.]+)% \|$", mutants.PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [float(share) >= 95 for share in shares] == [True, True]


def test_each_known_difference_names_an_existing_case():
    assert KNOWN.keys() <= {case["name"] for case in CASES}


def test_a_foreign_reader_fails_if_it_takes_too_long_to_answer(monkeypatch):
    monkeypatch.setattr(foreign, "ARGUMENTS", [sys.executable, "-c", "import time; print('61'); time.sleep(60)"])
    monkeypatch.setattr(foreign, "COMMAND_SECONDS", 0.1)
    request = {"do": "read", "path": "some.log", "policy": "skip", "dialect": "leveldb"}
    assert foreign.answer(request, foreign.command, foreign.LEVELDB) == {"error": "no answer in time"}


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES])
@pytest.mark.parametrize("runner", [cordwood_python, pure_python], ids=["cordwood", "reference"])
def test_a_runner_returns_the_answers_stated_in_the_case(runner, case, tmp_path, no_log, request):
    if runner is cordwood_python and case["name"] in KNOWN:
        request.applymarker(pytest.mark.xfail(reason=KNOWN[case["name"]], strict=True))
    for task in suite.tasks_of(case, tmp_path):
        answer = runner.answer(task.request)
        assert suite.differences(task, answer) == [], task.name
        if runner is cordwood_python and task.policy != "write" and answer["end"][0] != "refused":
            assert answer.keys() >= task.expected.keys(), task.name
