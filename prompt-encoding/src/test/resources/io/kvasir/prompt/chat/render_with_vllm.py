"""Writes expected.json of the chat tests with vLLM's own code (0.32.0) and transformers (5.19.0).

    python render_with_vllm.py FOLDER

FOLDER holds models.json and requests.json; tokenizers and templates are those of the other tests.
Every request goes through vLLM's request validation, message parsing, template rendering and
tokenizing, without an engine.
"""

import json
import pathlib
import shutil
import sys
import tempfile
import types

from transformers import AutoTokenizer
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.renderers import hf
from vllm.renderers.chat_utils import parse_chat_messages
from vllm.renderers.params import merge_kwargs

CONFIG = types.SimpleNamespace(
    multimodal_config=None,
    enable_prompt_embeds=False,
    tokenizer_revision=None,
    code_revision=None,
    revision=None,
    trust_remote_code=False,
    tokenizer="m",
    model="m",
    hf_config=types.SimpleNamespace(model_type="none"),
    is_multimodal_model=False,
    allowed_local_media_path="",
    allowed_media_domains=None,
)


def load(model, tokens, templates):
    folder = pathlib.Path(tempfile.mkdtemp())
    shutil.copy(tokens / model["tokenizer"] / "tokenizer.json", folder / "tokenizer.json")
    config = dict(model["config"])
    for name, file in model.get("files", {}).items():
        target = folder / name
        target.parent.mkdir(exist_ok=True)
        shutil.copy(templates / file, target)
    if "inline" in model:
        inline = {n: (templates / f).read_text(encoding="utf-8") for n, f in model["inline"].items()}
        config["chat_template"] = (
            inline["default"]
            if list(inline) == ["default"]
            else [{"name": n, "template": t} for n, t in inline.items()]
        )
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return AutoTokenizer.from_pretrained(folder)


def render(tokenizer, body):
    request = ChatCompletionRequest.model_validate(json.loads(json.dumps({"model": "m", **body})))
    tools = None if request.tools is None else [tool.model_dump() for tool in request.tools]
    params = request.build_chat_params(None, "auto").with_defaults(
        merge_kwargs(None, {"tools": tools, "tokenize": False})
    )
    content_format = hf.resolve_chat_template_content_format(
        chat_template=params.chat_template,
        tools=params.chat_template_kwargs.get("tools"),
        given_format="auto",
        tokenizer=tokenizer,
        model_config=CONFIG,
    )
    conversation, _, _ = parse_chat_messages(request.messages, CONFIG, content_format=content_format)
    text = hf.safe_apply_chat_template(
        CONFIG, tokenizer, conversation, **params.get_apply_chat_template_kwargs()
    )
    ids = tokenizer.encode(text, add_special_tokens=request.add_special_tokens)
    return {"format": content_format, "text": text, "tokens": ids}


def main():
    folder = pathlib.Path(sys.argv[1])
    tokens = folder.parent
    templates = folder.parent.parent / "template" / "templates"
    models = json.loads((folder / "models.json").read_text(encoding="utf-8"))
    requests = json.loads((folder / "requests.json").read_text(encoding="utf-8"))
    expected = {}
    for name, model in models.items():
        tokenizer = load(model, tokens, templates)
        chats = {}
        for key, body in requests.items():
            try:
                chats[key] = render(tokenizer, body)
            except Exception as e:  # noqa: BLE001
                chats[key] = {"error": type(e).__name__ + ": " + str(e)[:200]}
        prompts = ["Hello", "", " Größe <|im_end|> <tool_call> 123", "x\n\n<|eot_id|>"]
        expected[name] = {
            "chats": chats,
            "completions": {p: tokenizer.encode(p, add_special_tokens=True) for p in prompts},
        }
    (folder / "expected.json").write_text(
        json.dumps(expected, ensure_ascii=False, separators=(",", ":")).replace('"text":', '\n"text":') + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
