"""Chat templates: what Hugging Face's expect, in a sandbox."""

import json
import sys
from datetime import datetime

import pytest

from minivllm.transformers_utils import chat_template
from minivllm.transformers_utils.chat_template import render_chat_template
from minivllm.transformers_utils.tokenizer import get_tokenizer
from minivllm.utils import MissingExtraError
from tests.transformers_utils.test_tokenizer import TINY, copy_tokenizer

MESSAGES = [{"role": "user", "content": "Hi"}]


def test_a_template_of_tokenizer_config():
    tokenizer = get_tokenizer(TINY / "llama-gqa-linear-bf16")
    assert tokenizer.apply_chat_template(MESSAGES) == \
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=False) == \
        "<|im_start|>user\nHi<|im_end|>\n"


def test_a_template_file_wins(tmp_path):
    directory = copy_tokenizer(tmp_path, chat_template="old")
    (directory / "chat_template.jinja").write_text("new {{ bos_token }}", encoding="utf-8")
    assert get_tokenizer(directory).apply_chat_template(MESSAGES) == "new <s>"


def test_of_named_templates_the_default_one(tmp_path):
    templates = [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "me"}]
    directory = copy_tokenizer(tmp_path, chat_template=templates)
    assert get_tokenizer(directory).apply_chat_template(MESSAGES) == "me"


def test_no_template():
    with pytest.raises(ValueError, match="no chat template.*plain prompt"):
        get_tokenizer(TINY / "llama-mha").apply_chat_template(MESSAGES)


def test_without_jinja(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'minivllm\[models\]'"):
        render_chat_template("never seen before", MESSAGES)


# What templates rely on.


def test_blocks_leave_no_blank_lines():
    template = "{% for m in messages %}\n    {% if true %}\n{{ m.content }}\n    {% endif %}\n" \
               "{% endfor %}\nend"
    assert render_chat_template(template, MESSAGES) == "Hi\nend"


def test_tojson_writes_plain_json():
    template = "{{ messages | tojson }}{{ messages[0] | tojson(indent=2) }}"
    messages = [{"role": "user", "content": "<ü'>"}]
    assert render_chat_template(template, messages) == \
        json.dumps(messages, ensure_ascii=False) + json.dumps(messages[0], ensure_ascii=False,
                                                              indent=2)


def test_break_and_today(monkeypatch):
    class FixedDate(datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2026, 7, 26)

    monkeypatch.setattr(chat_template, "datetime", FixedDate)
    template = "{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}" \
               " {{ strftime_now('%d %b %Y') }}"
    assert render_chat_template(template, MESSAGES) == "01 26 Jul 2026"


# Errors.


def test_a_template_may_refuse_messages():
    template = "{{ raise_exception('Roles must alternate.') }}"
    with pytest.raises(ValueError, match="cannot render these messages: Roles must alternate."):
        render_chat_template(template, MESSAGES)


def test_a_broken_template():
    with pytest.raises(ValueError, match="the chat template is broken"):
        render_chat_template("{% if %}", MESSAGES)


@pytest.mark.parametrize("template", [
    "{{ ''.__class__.__mro__[1].__subclasses__()() }}",
    "{{ messages.append(1) }}",
    "{{ messages[0].update({'role': 'system'}) }}",
    "{{ cycler.__init__.__globals__.os.system('true') }}",
    "{% include '/etc/passwd' %}",
    "{% for i in range(10 ** 9) %}{% endfor %}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{{ 1 // 0 }}",
])
def test_a_template_can_do_no_harm(template):
    messages = [{"role": "user", "content": "Hi"}]
    with pytest.raises(ValueError, match="cannot render these messages"):
        render_chat_template(template, messages)
    assert messages == MESSAGES


@pytest.mark.parametrize("messages", ["Hi", [], {"role": "user"}])
def test_messages_must_be_a_list_of_some(messages):
    with pytest.raises(ValueError, match="messages must be a list"):
        render_chat_template("", messages)


@pytest.mark.parametrize("message", ["Hi", {"role": "user"}, {"content": "x"},
                                     {"role": 1, "content": "x"}])
def test_an_ill_formed_message_is_named(message):
    with pytest.raises(ValueError, match=r"messages\[1\] must be"):
        render_chat_template("", [*MESSAGES, message])
