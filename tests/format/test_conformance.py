"""The conformance cases: the package, and the reference that shares no code with it, give the answers of the cases."""

import re
import sys
from itertools import pairwise
from pathlib import Path

import cordwood_python
import foreign
import pure_python
import pytest
import suite

DOCS = Path(__file__).parents[2] / "docs" / "format"
CASES = suite.all_cases()
KNOWN = suite.known_in(Path(suite.__file__).parent / "known.txt")
"""The cases in which cordwood differs, and why."""


def rules():
    """The numbers of the rules of the pages: each starts a line of a table, or is printed bold."""
    pages = "".join((DOCS / f"{page}.md").read_text(encoding="utf-8") for page in ("reading", "packed", "damage"))
    return set(re.findall(r"(?:^\| |\*\*)([A-Z]\d+[a-z]?)(?: |\*\*)", pages, re.MULTILINE))


def test_no_two_cases_have_one_name():
    names = [case["name"] for case in CASES]
    assert len(names) == len(set(names))


def test_each_rule_has_a_case_and_each_case_shows_rules():
    assert all(case["rules"] for case in CASES)
    assert {rule for case in CASES for rule in case["rules"]} == rules()


def test_each_case_that_the_table_of_bugs_names_exists():
    table = (DOCS / "damage.md").read_text(encoding="utf-8").partition("\n## Bugs of other software")[2]
    named = re.findall(r'"([A-Z][^"|]{10,})"(?=[^|]*\|$)', table, re.MULTILINE)
    assert len(named) == 10
    assert {case["name"] for case in CASES} >= set(named)


def test_each_outcome_accounts_for_every_byte():
    """P1 to P3: between two spans there is at most the trailer of a block."""
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
            spans = [record[:2] for record in expected["records"]] + [region[1:] for region in expected["regions"]]
            for (_, end), (start, _) in pairwise([(0, 0), *sorted(spans), (file_len, file_len)]):
                is_trailer = end < start < end + 19 and (start - grid) % 32_768 == 0
                assert start == end or is_trailer, (case["name"], policy, end, start)
            checked += 1
    assert checked > 800


def test_the_severity_of_each_reason_is_that_of_the_page():
    table = re.findall(r"^\| `(\w+)` \| (\w+) \|", (DOCS / "reading.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert dict(table) == suite.SEVERITY


def test_the_tables_for_implementers_are_those_of_the_page_about_reading():
    table = re.compile(r"^\| (?:[AF]\d+ |`\w+` \| \d|\| \d).*", re.MULTILINE)
    reading, implement = (
        table.findall((DOCS / f"{page}.md").read_text(encoding="utf-8")) for page in ("reading", "implement")
    )
    assert implement == [line for line in reading if line in implement]
    assert len(implement) == 8 + 3 + 11


def test_an_answer_without_records_or_without_the_written_file_is_a_difference(tmp_path):
    case = next(case for case in CASES if "written" in case)
    found = {task.policy: suite.differences(task, {}) for task in suite.tasks_of(case, tmp_path)}
    assert found.pop("write") == ["content: none"]
    assert set(found) == set(case["expected"])
    assert all(differences == ["records: none"] for differences in found.values())


@pytest.mark.parametrize("line", ["records: 1", "[]"])
def test_an_answer_that_is_no_json_object_is_a_difference(line, tmp_path):
    script = "import sys\nfor request in sys.stdin: print(sys.argv[1], flush=True)"
    runner = suite.Runner([sys.executable, "-c", script, line])
    task = next(suite.tasks_of(CASES[0], tmp_path))
    differences = suite.differences(task, runner.answer(task.request))
    runner.stop()
    assert differences == [f"error: the answer is not a JSON object: {line!r}"]


def test_unsupported_requests_are_counted_for_each_reason(capsys):
    answer = "print(json.dumps({'unsupported': json.loads(line)['do']}), flush=True)"
    script = f"import sys, json\nfor line in sys.stdin: {answer}"
    assert suite.main([sys.executable, "-c", script]) == 0
    equal, *lines = capsys.readouterr().out.splitlines()
    counts = {reason: int(count) for count, _, reason in (line.split() for line in lines)}
    assert equal == "0 equal, 0 different"
    assert counts.keys() == {"(read)", "(write)", "(repair)"}
    assert counts["(repair)"] == sum("repair" in case["expected"] for case in CASES)


def test_a_runner_that_answers_wrongly_has_the_exit_status_1(monkeypatch, capsys):
    monkeypatch.setattr(suite, "all_cases", lambda: CASES[:1])
    script = "import sys\nfor request in sys.stdin: print('{}', flush=True)"
    assert suite.main([sys.executable, "-c", script]) == 1
    different = len(CASES[0]["expected"]) + ("written" in CASES[0])
    assert capsys.readouterr().out.endswith(f"\n0 equal, {different} different\n")


def test_a_known_difference_is_none_and_a_known_case_that_is_equal_is_one(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(suite, "all_cases", lambda: CASES[:1])
    file = tmp_path / "known.txt"
    file.write_text(f"X1: {CASES[0]['name']}\n")
    wrong = "import sys\nfor request in sys.stdin: print('{}', flush=True)"
    assert suite.main([sys.executable, "-c", wrong], suite.known_in(file)) == 0
    assert suite.main([sys.executable, pure_python.__file__], suite.known_in(file)) == 1
    assert "no answer differs" in capsys.readouterr().out


def test_each_known_difference_names_a_case():
    assert KNOWN.keys() <= {case["name"] for case in CASES}


def test_a_reader_of_others_that_takes_too_long_fails(monkeypatch):
    monkeypatch.setattr(foreign, "ARGUMENTS", [sys.executable, "-c", "import time; print('61'); time.sleep(60)"])
    monkeypatch.setattr(foreign, "COMMAND_SECONDS", 0.1)
    request = {"do": "read", "path": "some.log", "policy": "skip", "dialect": "leveldb"}
    assert foreign.answer(request, foreign.command, foreign.LEVELDB) == {"error": "no answer in time"}


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES])
@pytest.mark.parametrize("runner", [cordwood_python, pure_python], ids=["cordwood", "reference"])
def test_the_answers_are_those_of_the_case(runner, case, tmp_path, no_log, request):
    if runner is cordwood_python and case["name"] in KNOWN:
        request.applymarker(pytest.mark.xfail(reason=KNOWN[case["name"]], strict=True))
    for task in suite.tasks_of(case, tmp_path):
        answer = runner.answer(task.request)
        assert suite.differences(task, answer) == [], task.name
        if runner is cordwood_python and task.policy != "write" and answer["end"][0] != "refused":
            assert answer.keys() >= task.expected.keys(), task.name
