"""Expressions of Jinja, drawn at random: most have a value, some an error."""

import random

LITERALS = [
    *("0", "1", "3", "-3", "7", "10", "-1", "true", "false", "none", "2.5", "-0.5", "1e20", "1e-7", "0.1", "100.0", "1_000", "-1234"),
    *("''", "'a'", '"it\'s"', "' x\\n'", "'Straße é猫'", "'a,b,,c'", "'a-b c'", "'12'", "' 3.5 '", "'ABC def'", "'\\t\\u00e9\\x41'", "'<b>&'"),
    *("[]", "[1, 2, 3]", "['b', 'A', 'c']", "[1, 'a', none, 2.5]", "(1, 2)", "('x',)", "()", "[[1, 2], [3]]", "[3, 1, 2, 1]"),
    *("{}", "{'a': 1, 'b': [2]}", "{'x': {'y': 'z'}}", "{1: 'one', none: 2}", "range(4)", "range(5, 0, -2)"),
]
NAMES = ["s", "l", "d", "n", "absent", "people", "messages"]
BINARY = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
FILTERS = [
    *("trim", "length", "upper", "lower", "title", "capitalize", "join", "join(', ')", "join('-', attribute='name')", "first", "last"),
    *("default('x')", "default('x', true)", "d(1)", "replace('a', 'b')", "replace('', '.')", "replace('a', 'bb', 1)", "list", "items | list"),
    *("dictsort", "dictsort(by='value')", "dictsort(reverse=true)", "sort", "sort(reverse=true)", "sort(attribute='age')", "unique | list"),
    *("reverse | list", "reverse", "string", "int", "int(-1)", "float", "float(9.5)", "abs", "tojson", "tojson(indent=2)", "round", "round(1)"),
    *("tojson(sort_keys=true, separators=(',', ':'))", "tojson(ensure_ascii=true)", "indent", "indent(2, true)", "indent('> ', blank=true)"),
    *("round(2, 'ceil')", "round(method='floor')", "map('upper') | list", "map('int') | list", "map(attribute='name') | list", "count"),
    *("map(attribute='name', default='?') | join", "select | list", "reject('none') | list", "select('string') | list", "select('>', 1) | list"),
    *("selectattr('name') | list", "selectattr('age', 'gt', 3) | map(attribute='name') | list", "rejectattr('age', 'equalto', 7) | list"),
    *("trim('a ')", "map('trim') | join('|')", "selectattr('name', 'in', ['Al', 'Bo']) | list | length", "first | upper", "sort | join"),
]
TESTS = [
    *("defined", "undefined", "none", "string", "mapping", "sequence", "iterable", "number", "integer", "float", "boolean", "true", "false"),
    *("odd", "even", "divisibleby(3)", "divisibleby 2", "eq(1)", "equalto 'a'", "ne 1", "lt 3", "gt(2)", "ge 2", "le 2", "in [1, 'a']", "callable"),
    *("not none", "not string", "upper", "lower", "in 'abc'", "not in [1]"),
]
METHODS = [
    *("strip()", "strip('a ')", "lstrip()", "rstrip('\\n')", "split()", "split(',')", "split(none, 1)", "split(',', 1)", "rsplit(',', 1)"),
    *("splitlines()", "splitlines(true)", "startswith('a')", "endswith(('c', 'f'))", "removeprefix('a')", "removesuffix('c')", "upper()"),
    *("lower()", "title()", "capitalize()", "replace('a', 'é')", "replace('a', 'b', 1)", "join(['x', 'y'])", "find('b')", "rfind('a')"),
    *("count('a')", "count(1)", "index(1)", "get('a')", "get('q', 5)", "keys() | list", "values() | list", "items() | list", "get('x').y"),
    *("split('-')[-1]", "split(',') | length", "rsplit('b', maxsplit=1)", "find('')", "count('')", "rstrip().lstrip('a')", "keys() | join"),
]
SUBSCRIPTS = [
    *("[0]", "[-1]", "[9]", "['a']", "['name']", "[1:]", "[:-1]", "[::-1]", "[1:3]", "[-3:-1]", "[::2]", "[3:0:-1]", "[5:]", "[:0]", "[-2::-1]"),
    *(".a", ".x.y", ".name", "[true]", "[none]", "['x']['y']", "[0][0]", "[10:-10:-3]", "[:2][1:]", "[0].name", ".0"),
]


class Expressions:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def atom(self) -> str:
        return self.random.choice(NAMES if self.random.random() < 0.3 else LITERALS)

    def draw(self, depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.1:
            return self.atom()
        kind = self.random.choices("filter test method subscript binary unary choice list dict".split(), [6, 3, 5, 4, 5, 1, 1, 1, 1])[0]
        inner = self.draw(depth - 1)
        value = inner if inner.isalnum() and not inner.isdigit() else f"({inner})"
        if kind == "filter":
            return f"{value} | {self.random.choice(FILTERS)}"
        if kind == "test":
            return f"{value} is {self.random.choice(TESTS)}"
        if kind == "method":
            return f"{value}.{self.random.choice(METHODS)}"
        if kind == "subscript":
            return value + self.random.choice(SUBSCRIPTS)
        if kind == "unary":
            return f"{self.random.choice(['not ', '-', '+'])}{value}"
        other = self.draw(depth - 2 if depth > 1 else 0)
        other = other if other.isalnum() else f"({other})"
        if kind == "choice":
            return f"{value} if {other} else {self.atom()}"
        if kind == "list":
            return f"[{inner}, {other}]"
        if kind == "dict":
            return f"{{'k': {inner}, {self.atom()}: {other}}}"
        return f"{value} {self.random.choice(BINARY)} {other}"

    def statement(self, depth: int = 3) -> str:
        """A piece of a template."""
        choose = self.random.choice
        begin, end = choose(["{%", "{%-", "{%+"]), choose(["%}", "-%}", "%}", "+%}"])
        shown = f"{choose(['{{', '{{-'])} {self.draw(2)} {choose(['}}', '-}}'])}"
        gap = choose(["", " ", "\n", "\n  ", "  \n", "\t", "text", " a \n b "])
        if depth == 0:
            return gap + choose([shown, "{# note #}", "{#- note -#}", "text", "{{ x }}", "{{ loop.index }}", "{{ ns.k }}"]) + gap
        body = self.statement(depth - 1) + gap
        more = self.statement(depth - 1)
        tags = {
            "if": f"{begin} if ({self.draw(1)}) {end}{body}{begin} else {end}{more}{begin} endif {end}",
            "elif": f"{begin} if ({self.draw(1)}) {end}{body}{begin} elif ({self.draw(1)}) {end}{more}{begin} endif {end}",
            "for": f"{begin} for x in {choose(['l', 's', 'people', 'd', '[]', 'range(3)', 'd.items()'])} {end}{body}{begin} endfor {end}{more}",
            "filter": f"{begin} for x in people if x.age > 3 {end}{{{{ loop.first }}}}{body}{begin} else {end}{more}{begin} endfor {end}",
            "break": f"{begin} for x in range(5) {end}{{% if x == 2 %}}{{% {choose(['break', 'continue'])} %}}{{% endif %}}{body}{begin} endfor {end}",
            "set": f"{begin} set x = {self.draw(1)} {end}{body}{more}",
            "block": f"{begin} set x {end}{body}{begin} endset {end}{more}{{{{ x | length }}}}",
            "namespace": f"{begin} set ns = namespace(k=1) {end}{body}{{% for i in [1, 2] %}}{begin} set ns.k = ns.k + i {end}{{% endfor %}}{more}",
            "macro": f"{begin} macro m(x, y={self.draw(1)}) {end}{body}{{{{ y }}}}{begin} endmacro {end}{{{{ m(1) }}}}{{{{ m(y=2, x=s) }}}}{more}",
            "pairs": f"{begin} for k, v in d.items() {end}{{{{ k }}}}={{{{ v }}}}{{% if not loop.last %}}, {{% endif %}}{body}{begin} endfor {end}",
            "raw": f"{begin} raw %}}{{{{ x }}}}{gap}{{% endraw %}}{more}",
            "generation": f"{begin} generation {end}{body}{begin} endgeneration {end}{more}",
            "wrap": f"{begin} filter upper {end}{body}{begin} endfilter {end}{more}",
            "with": f"{begin} with x = 5 {end}{body}{begin} endwith {end}{more}",
            "next": body + gap + more,
        }
        return gap + tags[choose(list(tags))] + gap
