"""Writes the expected outputs of the template tests with PyPI jinja2 (the reference).

    python render_reference.py FOLDER      FOLDER holds snippets.py, templates/*.jinja and inputs.json

Settings and helper functions are those that chat templates are rendered with: an immutable sandbox,
trim_blocks, lstrip_blocks, loop controls, a generation block, a plain tojson, raise_exception and
strftime_now (with a fixed time, so that the outputs can be kept).
"""

import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_text"), [], [], body).set_lineno(line)

    def _text(self, caller):
        return caller()


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(
            value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def strftime_now(form):
        return datetime.datetime(2026, 3, 7, 9, 5, 4, 123456).strftime(form)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


def render(source, variables):
    """{"text": ...} or {"error": ..., "syntax": whether it failed before rendering}."""
    try:
        template = environment().from_string(source)
    except Exception as e:  # noqa: BLE001
        return {"error": str(e), "syntax": True}
    try:
        return {"text": template.render(**variables)}
    except Exception as e:  # noqa: BLE001
        return {"error": str(e), "syntax": False}


def main():
    folder = pathlib.Path(sys.argv[1])
    scope = {}
    exec((folder / "snippets.py").read_text(encoding="utf-8"), scope)
    table = [
        {"template": source, **render(source, scope["VARIABLES"])} for source in scope["SNIPPETS"]
    ]
    out = {"variables": scope["VARIABLES"], "snippets": table}
    (folder / "snippets.json").write_text(
        json.dumps(out, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    inputs = json.loads((folder / "inputs.json").read_text(encoding="utf-8"))
    expected = {}
    for path in sorted((folder / "templates").glob("*.jinja")):
        source = path.read_bytes().decode("utf-8")
        expected[path.stem] = {name: render(source, variables) for name, variables in inputs.items()}
    (folder / "expected.json").write_text(
        json.dumps(expected, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
