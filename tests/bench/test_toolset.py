"""The embedded tools are like real ones; files of tools are read or refused by name; sets have the size asked for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from loadpoint import bench

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def test_the_embedded_tools_are_sized_like_those_of_real_servers() -> None:
    tools = bench.embedded()
    count = bench.Counter()
    sizes = [
        count(json.dumps(bench.driver_of("openai.chat").wire(tool), separators=(",", ":"))) for tool in tools.tools
    ]
    spread = bench.distribution(sizes)
    assert len(tools) >= 240
    assert tools.servers == 20
    assert 120 <= spread["median"] <= 180
    assert 450 <= spread["p90"] <= 750
    assert spread["over_2000"] >= (5 if count.exact else 3)  # long enums have more tokens than the estimate
    assert spread["least"] < 80


def test_every_embedded_tool_is_one_of_a_kind_and_takes_generated_arguments() -> None:
    tools = bench.embedded().tools
    assert len({tool.name for tool in tools}) == len(tools)
    assert len({tool.description for tool in tools}) == len(tools)
    for tool in tools:
        assert NAME.fullmatch(tool.name)
        assert len(tool.description) >= 15
        jsonschema_rs.Draft202012Validator(tool.parameters).validate(bench.arguments_for(tool.parameters))


def test_one_tool_is_named_like_its_server() -> None:
    assert bench.embedded().find("fetch", "fetch") is not None


def test_the_sessions_call_tools_with_arguments_that_their_schemas_accept() -> None:
    tools = bench.embedded()
    for name in bench.SESSIONS:
        for need in bench.plan(name, bench.targets(tools), 6).needs:
            jsonschema_rs.Draft202012Validator(need.tool.parameters).validate(need.arguments)


@pytest.mark.parametrize("size", [2, 20, 40, 200, 256, 1_000])
def test_a_set_has_the_size_asked_for_and_what_a_session_needs(size: int) -> None:
    whole = bench.embedded()
    kept = [target.tool for target in bench.targets(whole)[:2]]
    chosen = whole.sized(size, keep=kept)
    assert len(chosen) == size
    assert {tool.name for tool in kept} <= {tool.name for tool in chosen.tools}
    assert len({tool.name for tool in chosen.tools}) == size
    assert chosen.copies == max(size - len(whole), 0)
    assert chosen == whole.sized(size, keep=kept)
    order = [tool.name for tool in whole.tools]
    assert [tool.name for tool in chosen.tools if tool.name in order] == [
        name for name in order if name in {tool.name for tool in chosen.tools}
    ]


TOOL = {"name": "read", "description": "Read a thing", "inputSchema": {"type": "object"}}


@pytest.mark.parametrize(
    ("content", "server", "name"),
    [
        ({"tools": [TOOL]}, "given", "given__read"),
        ([TOOL], "given", "given__read"),
        ({"server": "shop", "tools": [TOOL]}, "shop", "shop__read"),
        ({"jsonrpc": "2.0", "id": 1, "result": {"tools": [TOOL]}}, "given", "given__read"),
        ({"server": "read", "tools": [{**TOOL, "name": "read_all"}]}, "read", "read_all"),
        ({"server": "read", "tools": [TOOL]}, "read", "read__read"),
    ],
)
def test_every_shape_of_a_tool_list_is_read(tmp_path: Path, content: Any, server: str, name: str) -> None:
    path = tmp_path / "given.json"
    path.write_text(json.dumps(content))
    (tool,) = bench.from_files([path]).tools
    assert (tool.server, tool.name, tool.description) == (server, name, "Read a thing")


def test_names_that_meet_are_told_apart_and_foreign_characters_replaced(tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    first.write_text(json.dumps({"server": "s", "tools": [TOOL, TOOL]}))
    second.write_text(json.dumps({"server": "s", "tools": [TOOL, {**TOOL, "name": "x/y z." + "n" * 90}]}))
    names = [tool.name for tool in bench.from_files([first, second]).tools]
    assert len(set(names)) == 4
    assert all(NAME.fullmatch(name) for name in names)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "is not JSON"),
        ('"tools"', "found str"),
        ('{"tools": {}}', "without a list `tools`"),
        ("[]", "is empty"),
        ("[3]", "tools[0]: expected an object, found int"),
        ('[{"name": ""}]', "tools[0].name"),
        ('[{"name": "a", "description": 3}]', "tools[0] (a).description"),
        ('[{"name": "a", "inputSchema": []}]', "tools[0] (a).inputSchema"),
    ],
)
def test_an_unusable_file_is_refused_by_name_and_problem(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(bench.ToolFileError) as error:
        bench.from_files([path])
    assert str(path) in str(error.value)
    assert problem in str(error.value)


def test_a_missing_or_binary_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(bench.ToolFileError, match=r"absent\.json: cannot be read"):
        bench.from_files([tmp_path / "absent.json"])
    (tmp_path / "raw.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(bench.ToolFileError, match=r"raw\.json: is not UTF-8"):
        bench.from_files([tmp_path / "raw.json"])


def test_invented_tools_are_one_of_a_kind_sized_like_real_ones_and_the_same_in_every_run() -> None:
    count = bench.Counter()
    tools = bench.generated(2_256)
    assert tools.tools == bench.generated(3_000).tools[:2_256]
    assert tools.tools[:256] == bench.embedded().tools
    invented = tools.tools[256:]
    assert len({tool.name for tool in tools.tools}) == len({tool.description for tool in tools.tools}) == 2_256
    wire = bench.driver_of("openai.chat").wire
    spread = bench.distribution(count(json.dumps(wire(tool), separators=(",", ":"))) for tool in invented)
    assert 110 <= spread["median"] <= 190
    assert 450 <= spread["p90"] <= 750
    assert 3_000 <= spread["most"] <= 24_000
    for tool in invented[::7]:
        assert NAME.fullmatch(tool.name)
        jsonschema_rs.Draft202012Validator(tool.parameters).validate(bench.arguments_for(tool.parameters))
    assert len(bench.generated(10)) == 10


def test_a_folder_stands_for_its_files(tmp_path: Path):
    for name in ("b", "a"):
        listed = {"server": name, "tools": [{"name": f"{name}_do", "description": "Does it."}]}
        (tmp_path / f"{name}.json").write_text(json.dumps(listed), encoding="utf-8")
    assert [tool.own for tool in bench.from_files([tmp_path]).tools] == ["a_do", "b_do"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(bench.ToolFileError, match=r"the folder has no \*\.json"):
        bench.from_files([tmp_path / "empty"])
