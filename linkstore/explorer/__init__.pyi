from .page import render as render
from .server import make_app as make_app
from .views import Views as Views
from .widget import show as show
