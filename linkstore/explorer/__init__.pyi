from .page import render_hits as render_hits, render_store as render_store
from .server import make_app as make_app
from .views import Views as Views
from .widget import explore_hits as explore_hits, explore_store as explore_store
