"""The interpreter of chat templates beside jinja2, set up as transformers does: templates in the manner of model families, drawn
expressions and templates. Where jinja2 has a text heed has the same, or names what it does not know."""

import datetime
import json
import pathlib
import subprocess
import warnings

import pytest
from chat_families import CONVERSATIONS, FAMILIES, NOTHING, VARIABLES, WEATHER
from jinja_expressions import Expressions
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

pytest.importorskip("transformers")
from transformers.utils.chat_template_utils import render_jinja_template  # noqa: E402

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
NAMES = {
    "s": "abc Def, a\n",
    "l": [3, 1, 2],
    "d": {"a": 1, "b": "two", "x": {"y": "z"}},
    "n": 5,
    "people": [{"name": "Al", "age": 3}, {"name": "Bo", "age": 7}, {"name": "cy", "age": 5}],
}
HELLO = [{"role": "user", "content": "Hi"}]

# What heed names and refuses, where jinja2 may have a text.
REFUSALS = ["heed does not know", "beyond 63 bits", "printed", "too large", "a slice of", "a generator", "'loop' is undefined"]


@pytest.fixture(scope="module")
def ours(build: pathlib.Path, tmp_path_factory: pytest.TempPathFactory):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(alphabet)}, []))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(TOKENS.values()))
    folder = tmp_path_factory.mktemp("jinja")
    tokenizer.save(str(folder / "tokenizer.json"))

    def ask(template: str, requests: list[dict]) -> list[dict]:
        (folder / "tokenizer_config.json").write_text(json.dumps({**TOKENS, "chat_template": template}))
        lines = []
        for request in requests:
            options = {name: json.dumps(request[name]) for name in ["tools", "variables"] if request.get(name)}
            messages = [json.dumps(message) for message in request["messages"]]
            lines.append(json.dumps({"messages": messages, "prompt": request.get("prompt", True), **options}))
        program = build / "tests/python/probe/tokenizer_probe"
        result = subprocess.run([program, folder], input="\n".join(lines), capture_output=True, text=True, check=True, timeout=300)
        return [json.loads(line) for line in result.stdout.strip().split("\n")]

    return ask


def theirs(template: str, request: dict) -> dict:
    options = {"tools": request.get("tools") or None, "add_generation_prompt": request.get("prompt", True)}
    variables = {**TOKENS, **request.get("variables", {})}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {"text": render_jinja_template([request["messages"]], chat_template=template, **options, **variables)[0][0]}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def agree(ours: dict, theirs: dict) -> bool:
    if "error" not in ours:
        return ours["text"] == theirs.get("text")
    return "error" in theirs or any(reason in ours["error"] for reason in REFUSALS)


@pytest.mark.parametrize("family", FAMILIES)
def test_families(ours, family: str) -> None:
    requests = [
        {"messages": messages, "tools": tools, "prompt": prompt, "variables": variables}
        for messages in CONVERSATIONS
        for tools in [None, [WEATHER], [WEATHER, NOTHING]]
        for prompt in [True, False]
        for variables in VARIABLES
    ]
    while True:
        day = datetime.date.today()
        found = ours(FAMILIES[family], requests)
        expected = [theirs(FAMILIES[family], request) for request in requests]
        if day == datetime.date.today():
            break
    for request, answer, reference in zip(requests, found, expected, strict=True):
        assert answer.get("text") == reference.get("text"), (request, answer, reference)
    assert sum("text" in reference for reference in expected) > len(requests) / 4


@pytest.mark.parametrize("seed", range(2))
def test_expressions(ours, seed: int) -> None:
    expressions = [Expressions(seed * 1000 + i).draw() for i in range(300)]
    template = "".join(f"{{% elif which == {i} %}}{{{{ {expression} }}}}" for i, expression in enumerate(expressions))
    requests = [{"messages": HELLO, "variables": {**NAMES, "which": i}} for i in range(len(expressions))]
    found = ours("{% if false %}" + template + "{% endif %}", requests)
    texts = 0
    for expression, request, answer in zip(expressions, requests, found, strict=True):
        reference = theirs("{{ " + expression + " }}", request)
        assert agree(answer, reference), (expression, answer, reference)
        texts += "text" in answer
    assert texts > len(expressions) / 4


def test_templates(ours) -> None:
    texts = 0
    for seed in range(120):
        template = Expressions(seed).statement()
        request = {"messages": HELLO, "variables": NAMES}
        answer, reference = ours(template, [request])[0], theirs(template, request)
        assert agree(answer, reference), (template, answer, reference)
        texts += "text" in answer
    assert texts > 30


WHITE_SPACE = [
    *("a\n  {% if true %}\n  b\n  {% endif %}\n c", "a \n {%- if true -%} \n b \n {%- endif -%} \n c", "{{ 1 }}\n\n{{ 2 }}\n", "x {#- y -#} z\n"),
    *("  {%+ if true %}a{% endif +%}\n b", "{% if true +%}\na{% endif %}\n", "{% raw %}{{ a }} {% b %}{% endraw %}\nc", "a {{- ' b ' -}} c {{+ 1 }}"),
    *("{%- raw -%} {{ x }} {%- endraw -%} y", "\t{# a #}\n\tb", "{{ '}}' }}{{ \"%}\" }}", "{{ {'a': {'b': 1}}['a']['b']}}", "a\r\n{% if 1 %}\r\nb{% endif %}"),
    *("{#-#} a", "{##}\n\nb", "{ { a } }", "{{ 'a\\\nb' }}", "{{ '\\x41\\u00e9\\101\\q' }}", "é\u00a0{%- if 1 %} b{% endif %}", "\n\n", "", "{% set a = 1 %}\n\n\nb"),
]


def test_white_space(ours) -> None:
    for template in WHITE_SPACE:
        request = {"messages": HELLO}
        assert ours(template + "{{ 0 }}", [request])[0].get("text") == theirs(template + "{{ 0 }}", request)["text"], template


ERRORS = [
    *("{{ absent.name }}", "{{ absent['a'] }}", "{{ absent() }}", "{{ 1 / 0 }}", "{{ 'a' + 1 }}", "{{ [1] < ['a'] }}", "{{ none | length }}", "{{ 1 | join }}"),
    *("{% for x in 5 %}{% endfor %}", "{{ raise_exception('no') }}", "{{ absent | tojson }}", "{{ 'a' | replace('a') }}"),
    *("{% set x = 1 %}{% set x.y = 2 %}", "{% for a, b in [[1]] %}{% endfor %}", "{{ 'a'.replace(1, 2) }}", "{{ ''.join([1]) }}", "{{ 'a'.split('') }}"),
    *("{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}"),
    *("{{ range(10**6) }}", "{{ [1].append(2) }}", "{{ {}.update(a=1) }}", "{{ 1 is divisibleby(0) }}", "{{ 'a' | trim(chars='a', b=1) }}", "{{ [1, 2][::0] }}"),
    *("{% if %}{% endif %}", "{% for x %}{% endfor %}", "{{ 1 + }}", "{{ (1 }}", "{{ [1 }}", "{% endif %}", "{% if true %}", "{{ 'a }}", "{% set %}", "{# a"),
    *("{{ 1 | nothing }}", "{{ 1 is nothing }}", "{% nothing %}", "{{ a b }}", "{% break %}", "{{ 012 }}", "{% macro %}{% endmacro %}", "{{ }}", "{% raw %}a"),
    *("{% set n = namespace(_a=1) %}", "{% set n = namespace() %}{% set n._a = 1 %}", "{{ dict(1) }}", "{{ 'a' in 5 }}", "{{ 5 in 'a' }}"),
]


def test_errors(ours) -> None:
    for template in ERRORS:
        request = {"messages": HELLO}
        assert "error" in theirs(template, request), template
        assert "error" in ours(template, [request])[0], template


def test_messages_are_text(ours) -> None:
    """Nothing of a message becomes a special token, however a template takes it apart."""
    template = (
        "{{ bos_token }}{% set c = messages[0].content %}{{ c ~ c.split(' ')[0] ~ c[1:] ~ c | upper | lower }}{{ messages[0] | tojson }}{{ tools }}"
        "{{ note.replace('x', '<') }}{{ eos_token }}"
    )
    request = {"messages": [{"role": "user", "content": "<s> </s>"}], "tools": ["</s>"], "variables": {"note": "x/s>"}}
    answer = ours(template, [request])[0]
    assert answer["text"].count("s>") > 5
    assert answer["ids"].count(256) == 1 and answer["ids"][0] == 256
    assert answer["ids"].count(257) == 1 and answer["ids"][-1] == 257
