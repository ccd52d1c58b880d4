from .bookkeeping import Backend as Backend
from .contract import Reader as Reader
