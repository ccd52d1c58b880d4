# extras: cassandra, plot
# %% [markdown]
# # Cassandra and Astra DB
#
# The same store on a cluster, with any number of writers. This notebook needs a server: Apache Cassandra 5.0, or a
# database of Astra DB, which has a free tier.
# %% [markdown]
# ## Connect to a server
#
# **Your own server.** `CASSANDRA_CONTACT_POINTS` is its address (`host` or `host:port`); the default is `127.0.0.1`. In
# a clone of linkstore, `make cassandra` or `docker compose up --detach --wait` starts a server.
#
# **Astra DB.** Create a database and a token in Astra's console. Set `ASTRA_DB_APPLICATION_TOKEN`,
# `ASTRA_DB_DATABASE_ID` and, if it is not `default_keyspace`, `ASTRA_DB_KEYSPACE`: in Colab under *Secrets* (the key at
# the left), otherwise in the environment.
# %%
import os


def setting(name: str, default: str = "") -> str:
    """From the environment, or from Colab's secrets."""
    if name in os.environ:
        return os.environ[name]
    try:
        from google.colab import userdata
    except ImportError:  # not in Colab
        return default
    try:
        return userdata.get(name)
    except (userdata.SecretNotFoundError, userdata.NotebookAccessError):
        return default


token = setting("ASTRA_DB_APPLICATION_TOKEN")
# %%
import cassio

if token:
    keyspace = setting("ASTRA_DB_KEYSPACE", "default_keyspace")
    cassio.init(token=token, database_id=setting("ASTRA_DB_DATABASE_ID"), keyspace=keyspace)
else:
    host, _, port = setting("CASSANDRA_CONTACT_POINTS", "127.0.0.1").partition(":")
    keyspace = setting("CASSANDRA_KEYSPACE", "linkstore")
    cassio.init(contact_points=host, keyspace=keyspace, cluster_kwargs={"port": int(port or 9042)})
    cassio.config.resolve_session().execute(
        f"CREATE KEYSPACE IF NOT EXISTS {keyspace} "
        "WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"
    )
print("Astra DB" if token else f"Cassandra at {host}", "keyspace", keyspace)
# %% [markdown]
# ## A store
#
# `LinkStore.cassandra` takes session and keyspace from `cassio.init`, as other LangChain stores do, and creates its
# tables.
# %%
from linkstore import LinkStore
from linkstore.cli.demo import QUESTION, site
from linkstore.ingest import FolderSource, index

store = LinkStore.cassandra(table="notebook")
with site() as folder:
    summary = index(store, FolderSource(folder), name="seattle")
print(summary.pages)
print(f"{summary.chunks} chunks;", dict(summary.links))
# %% [markdown]
# ## The same answers as in a folder
#
# One function computes the scores from the stored vectors, on every engine.
# %%
from linkstore.strategies import Eager

links = Eager(start_k=3, depth=1, kinds={"hyperlink": 1.0}, k=6)
local = LinkStore.open(":memory:")
with site() as folder:
    index(local, FolderSource(folder), name="seattle")

for there, here in zip(store.search(QUESTION, strategy=links), local.search(QUESTION, strategy=links)):
    print(f"{there.score:.4f} {here.score:.4f}  {there.document.id}")
    assert there.document.id == here.document.id
# %% [markdown]
# ## Async, many at once
# %%
import asyncio

questions = ["Who built the monorail?", "What happened to the market?", "Where is the troll?"]
answers = await asyncio.gather(*(store.asearch(question, strategy=links) for question in questions))
for question, hits in zip(questions, answers):
    print(f"{question}  →  {hits[0].document.metadata['url']}")
# %% [markdown]
# ## The tables
#
# Each side of a link group is one partition of `notebook_members`. To follow a link, linkstore reads this partition.
# %%
session = cassio.config.resolve_session()
rows = session.execute(f"SELECT kind, tag, side, id FROM {keyspace}.notebook_members LIMIT 500")
counts = {}
for row in rows:
    counts[row.kind, row.tag, row.side] = counts.get((row.kind, row.tag, row.side), 0) + 1
for (kind, tag, side), count in sorted(counts.items(), key=lambda item: -item[1])[:8]:
    print(f"{count:3} {kind:10} {side:3} {tag}")
# %% [markdown]
# ## What was found, and how
# %%
from linkstore.explorer import show

hits = store.search(QUESTION, strategy=links)
for part in ("", "_texts", "_members", "_words", "_accesses", "_pages", "_settings"):  # leave nothing behind
    session.execute(f"DROP TABLE IF EXISTS {keyspace}.notebook{part}")
show(hits, QUESTION)
# %% [markdown]
# The same search on Cassandra: to follow a link is to read one partition of `notebook_members`.
