"""Questions in scripts without spaces are answered by the words in them."""

from __future__ import annotations

import pytest

from linkstore import LinkStore
from linkstore.strategies import Words

HALF_WIDTH_PRINTER = "\uff8c\uff9f\uff98\uff9d\uff80"
FULL_WIDTH_PYTHON = "\uff30\uff59\uff54\uff48\uff4f\uff4e"


@pytest.fixture
def store():
    with LinkStore() as opened:
        yield opened


@pytest.mark.parametrize("question", ["プリンタの使い方", HALF_WIDTH_PRINTER, "Python", FULL_WIDTH_PYTHON])
def test_half_width_katakana_and_full_width_letters_match_ordinary_ones(store, question):
    printing = f"半角の{HALF_WIDTH_PRINTER}を{FULL_WIDTH_PYTHON}で設定します。"
    store.add_texts([printing, "ここには何も関係がない文章があります。"], ids=["printing", "other"])
    assert [hit.document.id for hit in store.search(question, strategy=Words())] == ["printing"]


def test_the_subject_of_a_chinese_question_outweighs_the_words_around_it(store):
    subjects = ("渲染函数", "计算属性", "侦听器", "过渡效果", "状态管理", "模板语法", "生命周期")
    pages = [f"如何使用{subject}。本页介绍如何使用{subject}、怎样处理常见问题。" for subject in subjects]
    store.add_texts([*pages, "子组件用插槽接收父组件的内容。"], ids=[*subjects, "插槽"])
    assert store.search("如何使用插槽")[0].document.id == "插槽"
    assert store.search("插槽是什么", strategy=Words())[0].document.id == "插槽"
