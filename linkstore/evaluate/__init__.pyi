from .calibration import (
    calibrate_min_similarity as calibrate_min_similarity,
    estimate_lexical_weight as estimate_lexical_weight,
)
from .checkup import Checkup as Checkup, examine as examine
from .link_groups import Profile as Profile
from .metrics import Evaluation as Evaluation, Outcome as Outcome
from .profiling import profile as profile
from .running import (
    GoldQuestion as GoldQuestion,
    evaluate as evaluate,
    read_corpus as read_corpus,
    read_questions as read_questions,
)
from .telemetry import Telemetry as Telemetry
