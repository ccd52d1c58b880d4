from .calibration import (
    Floor as Floor,
    LexicalWeight as LexicalWeight,
    calibrate_floor as calibrate_floor,
    estimate_lexical_weight as estimate_lexical_weight,
)
from .checkup import (
    Checkup as Checkup,
    CheckupFinding as CheckupFinding,
    aexamine as aexamine,
    examine as examine,
)
from .link_groups import (
    GoldEdges as GoldEdges,
    GoldProfile as GoldProfile,
    KindProfile as KindProfile,
    LinkGroup as LinkGroup,
    Profile as Profile,
    list_size_labels as list_size_labels,
)
from .metrics import (
    STRATEGIES as STRATEGIES,
    Comparison as Comparison,
    Estimate as Estimate,
    Evaluation as Evaluation,
    Outcome as Outcome,
    compare_with_baseline as compare_with_baseline,
)
from .profiling import profile as profile, with_links as with_links
from .running import (
    GOLD_KINDS as GOLD_KINDS,
    GoldKind as GoldKind,
    GoldQuestion as GoldQuestion,
    evaluate as evaluate,
    read_corpus as read_corpus,
    read_questions as read_questions,
)
from .telemetry import Telemetry as Telemetry
