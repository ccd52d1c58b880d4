from .page import render as render
from .widget import show as show
