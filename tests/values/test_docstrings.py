"""What commands and tools say of themselves stands in the docstrings of functions."""

from __future__ import annotations

from internals import ArgumentText, read_docstring


def test_a_docstring_has_a_description_and_a_text_for_each_argument() -> None:
    def call(first, second, third) -> None:
        """Do something.

        And more: of it
        there are two lines.

        Args:
            first (NAME): What is named, as in
                a: b.
            second: Anything (or nothing).
            *third: Not taken.

        Raises:
            ValueError: It is no argument.
        """

    description, told = read_docstring(call)

    assert description == "Do something.\n\nAnd more: of it\nthere are two lines."
    assert told == {
        "first": ArgumentText("NAME", "What is named, as in a: b."),
        "second": ArgumentText("", "Anything (or nothing)."),
    }


def test_a_function_without_docstring_says_nothing() -> None:
    assert read_docstring(lambda: None) == ("", {})
