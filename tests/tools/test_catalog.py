"""What a model is shown. Its size is part of every conversation."""

import inspect
import json

import pytest

from mcp_server.commands.tools import sizes
from tools._catalog import catalog
from tools._tool import Tool

ALL = [pytest.param(tool, id=name) for name, tool in catalog().items()]


def test_names_and_order_are_these() -> None:
    assert list(catalog()) == [
        "start_session",
        "list_sessions",
        "close_session",
        "listdir",
        "view",
        "grep",
        "rewrite",
        "diff",
        "eval",
        "bash",
        "diagnose",
        "pdb",
        "wait",
        "inspect",
        "trace",
    ]


def test_list_stays_within_its_budget() -> None:
    shown, outputs = sizes()
    assert shown <= 12_000
    assert outputs <= 16_000


@pytest.mark.parametrize("tool", ALL)
def test_every_parameter_is_described(tool: Tool) -> None:
    for name, schema in tool.input_schema["properties"].items():
        assert len(schema.get("description", "")) > 10, name


@pytest.mark.parametrize("tool", ALL)
def test_schemas_are_without_noise(tool: Tool) -> None:
    assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
    for schema in (tool.input_schema, tool.output_schema):
        assert '"title"' not in json.dumps(schema)


@pytest.mark.parametrize("tool", ALL)
def test_arguments_use_only_schema_words_that_every_library_takes(tool: Tool) -> None:
    assert set(tool.input_schema) <= {"type", "properties", "required"}
    for name, schema in tool.input_schema["properties"].items():
        bounds = {"minimum", "maximum", "exclusiveMinimum", "default", "enum"}
        assert set(schema) <= {"type", "description", "items"} | bounds, name
        assert schema["type"] in ("string", "integer", "number", "boolean", "array"), name
        items = schema.get("items", {"type": "string"})
        assert set(items) <= {"type", "properties", "required"} and items["type"] in ("string", "object"), (
            name
        )
        for part in items.get("properties", {}).values():
            assert set(part) == {"type"} and part["type"] in ("string", "integer"), name
        assert schema.get("default", 0) is not None, name


@pytest.mark.parametrize("tool", ALL)
def test_description_starts_with_one_sentence_for_a_newcomer(tool: Tool) -> None:
    assert tool.description.partition("\n")[0].rstrip().endswith((".", ";")) or "." in tool.description
    assert len(tool.description) < 700


@pytest.mark.parametrize("tool", ALL)
def test_only_session_tools_without_a_session_lack_session_id(tool: Tool) -> None:
    expected = tool.name not in ("start_session", "list_sessions")
    assert ("session_id" in tool.input_schema["properties"]) is expected


@pytest.mark.parametrize("tool", ALL)
def test_tools_are_coroutine_functions(tool: Tool) -> None:
    assert inspect.iscoroutinefunction(tool.function)


def test_arguments_that_may_be_left_out_are_not_required() -> None:
    schema = catalog()["view"].input_schema
    assert schema["required"] == ["path"]
    # Nor have they a lower bound, since 0 is how a strict schema lets a model say nothing.
    assert schema["properties"]["start"] == {"type": "integer", "description": "First line, e.g. 40."}


@pytest.mark.parametrize("tool", ALL)
def test_what_clients_check_in_each_answer_has_one_level(tool: Tool) -> None:
    for name, schema in tool.output_schema["properties"].items():
        assert "properties" not in schema.get("items", schema), name


def test_levels_below_are_told_in_words() -> None:
    told = catalog()["pdb"].output_schema["properties"]
    frame = {
        "type": ["object", "null"],
        "description": "{path: string, line: integer, function: string}",
    }
    assert told["frame"] == frame
    change = "{name: string, kind: new|changed|mutated|gone, value?: string|null, old?: string|null, detail?: string|null}"
    assert told["changed"] == {"type": "array", "description": f"[{change}]"}
    place = "raised_at?: {path: string, line: integer, function: string}|null"
    chain = f"chain?: [{{type: string, message: string, relation: cause|context, {place}}}]"
    assert told["exception"]["description"] == f"{{type: string, message: string, {chain}}}"
