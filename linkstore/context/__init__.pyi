from .candidates import source_header as source_header
from .compiled import Compiled as Compiled, counter_of as counter_of
from .compiler import ContextCompiler as ContextCompiler
from .decay import Decay as Decay
