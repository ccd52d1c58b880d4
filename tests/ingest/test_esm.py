"""Imports and exports of MDX are left out where they are JavaScript, and nowhere else."""

from __future__ import annotations

import pytest
from growing import grows_with_length
from internals import remove_esm

FENCED = """# Guide

```jsx
import React from 'react';
export default function App() { return <Button label="x" />; }
```

- Step

  ~~~
  import b from 'b'

  export const c = 1
  ~~~

> ```
> import d from 'd'
> ```
"""


@pytest.mark.parametrize(
    "text",
    [
        FENCED,
        "import duties are paid.\n\nexport controls apply to all.\n",
        "import goods from 'China' at low cost.\n",
        "export default values before you go.\n\nexport const is a keyword.\n\nexport function of state.\n",
        "We pay\nimport x from 'x'\n",
        "- import x from 'x'\n\n> export const y = 1\n\n    import z from 'z'\n",
        "important\n\nexported: import x from 'x'\n",
    ],
)
def test_prose_and_code_stay(text):
    assert remove_esm(text) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("import A from 'a'\nimport {b,\n c} from \"b\"; // x\n\n# T\n", "\n# T\n"),
        ("import 'a.css'\nimport D, * as e from 'd' with { type: 'json' }\ntext\n", "text\n"),
        ("# T\nimport A from 'a'\n\ntext\n", "# T\n\ntext\n"),
        ("export const a = {\n  x: 1,\n\n  y: [`}`, '}'],\n}\n\ntext\n", "\ntext\n"),
        ("export const a = 1\n# H\n\ntext\n", "# H\n\ntext\n"),
        ("export default function F() {\n  return <p>\n\n  x</p>\n}\n\ntext\n", "\ntext\n"),
        ("export {a} from './x'\nexport * from 'y'\n\nüber\r\n", "\nüber\r\n"),
        ("export const X = () => (\n  <p>don't</p>)\n\none\n\ntwo\n", "\none\n\ntwo\n"),
    ],
    ids=range(8),
)
def test_statements_go_and_what_follows_them_stays(text, left):
    assert remove_esm(text) == left


@pytest.mark.parametrize(
    "piece", ["export const a = (\n\n", "export const a = /*\n\n", "import {a,", "export let a = `\n\n"]
)
def test_time_grows_with_length(piece):
    def read(length):
        return remove_esm(piece * (length // len(piece)))

    assert grows_with_length(read, 20_000)
