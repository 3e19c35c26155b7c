"""Writes inputs.json: the conversations that every template of the tests is rendered with."""

import json
import pathlib
import sys

WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "Wetter in einer Stadt — \"now\" <b>", "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "Where, e.g. Zürich 🏔"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"}, "days": {"type": "integer", "default": 3}, "coords": {"type": "array", "items": {"type": "number"}, "nullable": True}}, "required": ["city"]}}}
SEARCH = {"type": "function", "function": {"name": "search", "description": None, "parameters": {"type": "object", "properties": {"query": {"oneOf": [{"type": "string", "description": "text"}, {"type": "array", "items": {"type": "string"}, "default": []}]}, "filter": {"type": "object", "properties": {"from": {"type": "number"}, "tags": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "boolean"}}}}}, "required": ["from"]}, "any": {}}, "required": ["query"]}}}
NOARGS = {"type": "function", "function": {"name": "now", "description": "Time", "parameters": {}}}

BASE = {"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True}


def call(name, arguments, identity="abc123XYZ"):
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


USER = {"role": "user", "content": "Hello there!"}
SYSTEM = {"role": "system", "content": "Be kind.\nSpeak plainly. "}
ANSWER = {"role": "assistant", "content": "  Hi! How can I help?  "}
UNICODE = {"role": "user", "content": "Größe? 日本語 😀\u200d\u00a0 <|im_end|> {{ not a tag }}\n\n  indented\ttab\r\nend "}
PARTS = {"role": "user", "content": [{"type": "text", "text": " What is this? "}, {"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "And that?"}]}
CALL = {"role": "assistant", "content": "", "tool_calls": [call("get_weather", {"city": "Zürich", "unit": "celsius", "days": 2.0, "nested": {"a": [1, None, True], "s": "q\"'<>&"}})]}
CALLS = {"role": "assistant", "content": "Let me look.", "tool_calls": [call("get_weather", {"city": "Rome"}), call("search", {"query": ["a", "b"], "any": 1e21}, "zzz999zzz")]}
RESULT = {"role": "tool", "tool_call_id": "abc123XYZ", "name": "get_weather", "content": "{\"temp\": 21.5}"}
RESULT2 = {"role": "tool", "tool_call_id": "zzz999zzz", "content": "nothing found"}
THOUGHT = {"role": "assistant", "content": "<think>\nHmm, 2+2.\n</think>\n\nIt is 4."}

INPUTS = {
    "one-user": {**BASE, "messages": [USER]},
    "no-generation-prompt": {**BASE, "messages": [USER, ANSWER], "add_generation_prompt": False},
    "system": {**BASE, "messages": [SYSTEM, USER]},
    "turns": {**BASE, "messages": [SYSTEM, USER, ANSWER, {"role": "user", "content": "More."}, {"role": "assistant", "content": "Sure."}, {"role": "user", "content": "Thanks"}]},
    "unicode": {**BASE, "messages": [SYSTEM, UNICODE, THOUGHT, UNICODE]},
    "parts": {**BASE, "messages": [{"role": "system", "content": [{"type": "text", "text": "Look."}]}, PARTS]},
    "tools": {**BASE, "messages": [USER], "tools": [WEATHER]},
    "tools-system": {**BASE, "messages": [SYSTEM, USER], "tools": [WEATHER, SEARCH, NOARGS], "inline_functions": False, "today": "26 Jul 2024"},
    "tool-call": {**BASE, "messages": [USER, CALL, RESULT], "tools": [WEATHER]},
    "tool-calls": {**BASE, "messages": [SYSTEM, USER, CALLS, RESULT, RESULT2, {"role": "assistant", "content": "21.5 degrees."}, {"role": "user", "content": "And tomorrow?"}], "tools": [WEATHER, SEARCH]},
    "tool-reasoning": {**BASE, "messages": [USER, {**CALL, "reasoning_content": "\nI should ask.\n"}, RESULT, {"role": "assistant", "content": "Fine.", "reasoning_content": "Got it."}], "tools": [WEATHER], "enable_thinking": False, "reasoning_effort": "high"},
    "thinking-off": {**BASE, "messages": [USER, THOUGHT, USER], "enable_thinking": False, "tools": None},
    "wrong-order": {**BASE, "messages": [ANSWER, USER]},
    "two-users": {**BASE, "messages": [USER, USER]},
    "unknown-role": {**BASE, "messages": [{"role": "critic", "content": "no"}, USER]},
    "developer": {**BASE, "messages": [{"role": "developer", "content": "Dev rules."}, USER]},
    "documents": {**BASE, "messages": [USER], "documents": [{"title": "A & B", "text": "line one\n\nline two"}, {"title": "", "text": "x"}]},
    "empty": {**BASE, "messages": [{"role": "user", "content": ""}, {"role": "assistant", "content": ""}, {"role": "user", "content": " "}]},
    "no-variables": {"messages": [USER]},
    "no-messages": {**BASE, "messages": []},
    "null-content": {**BASE, "messages": [USER, {"role": "assistant", "content": None, "tool_calls": [call("now", {})]}, {"role": "tool", "tool_call_id": "abc123XYZ", "content": "12:00"}]},
}

pathlib.Path(sys.argv[1]).write_text(json.dumps(INPUTS, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
