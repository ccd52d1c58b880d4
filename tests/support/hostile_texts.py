"""Texts that try to become something else where a page shows them."""

from __future__ import annotations

from itertools import islice, product

_SCRIPTS = (
    "<script>window.taken=1</script>",
    "</script><script>window.taken=1</script>",
    "<img src=x onerror='window.taken=1'>",
    "<svg onload=window.taken=1>",
    "<svg><script>window.taken=1</script></svg>",
    '"><img src=x onerror=window.taken=1>',
    "'><svg/onload=window.taken=1>",
    "<iframe srcdoc='<script>parent.taken=1</script>'></iframe>",
    "<a href='javascript:window.taken=1' autofocus onfocus=window.taken=1>x</a>",
    "<math><mtext><table><mglyph><style><img src=x onerror=window.taken=1>",
    "<details open ontoggle=window.taken=1>",
    "<input autofocus onfocus=window.taken=1>",
    "<body onload=window.taken=1>",
    "<style>@import 'http://elsewhere.example/x.css';</style>",
    "<link rel=stylesheet href=http://elsewhere.example/x.css>",
    "<meta http-equiv=refresh content='0;url=http://elsewhere.example/'>",
    "<base href=http://elsewhere.example/>",
    "<object data='javascript:window.taken=1'></object>",
    "<!--<script>window.taken=1//-->",
    "<template><script>window.taken=1</script></template>",
    "{{constructor.constructor('window.taken=1')()}}",
    "${window.taken=1}",
    "javascript:window.taken=1",
    "data:text/html,<script>window.taken=1</script>",
    "&lt;script&gt;window.taken=1&lt;/script&gt;",
)
_AROUND = (
    ("", ""),
    ("plain words ", " and more"),
    ("\u202e", "\u202c"),
    ("]]>", "<![CDATA["),
    ("--!>", ""),
    ("\\u003c/script\\u003e", ""),
    ('"}]}', ""),
    ("</title></textarea></style></noscript></template>", ""),
    ("\u2028", "\u2029"),
    ("</SCRIPT\n>", ""),
    ("<", ">"),
    ("\x00", "\x7f"),
    ("`", "`"),
    ("%3Cscript%3E", "%3C/script%3E"),
    ("\uff1c", "\uff1e"),
    ("<%", "%>"),
    ("<?php ", "?>"),
    ("*/", "/*"),
    ("//", ""),
    ("\N{REPLACEMENT CHARACTER}", "\U0001f469\u200d\U0001f4bb"),
)


def hostile_texts(count: int = 500) -> list[str]:
    """Return different texts, each of them one script or tag in some context."""
    return [
        f"{before}{script}{after}" for (before, after), script in islice(product(_AROUND, _SCRIPTS), count)
    ]
