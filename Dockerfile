# The page of a store and its tools for MCP clients, at port 8766:
#
#   docker build --tag linkstore .
#   docker run --rm -v "$PWD":/data linkstore index /data/site --store /data/kb
#   docker run --rm -p 8766:8766 -v "$PWD/kb":/data/kb -e LINKSTORE_SERVE_TOKEN=… linkstore
#
# A store is indexed as the user who owns the folder: add --user "$(id -u):$(id -g)" if that is not 1000.
FROM python:3.13-slim AS build
COPY . /src
RUN python -m venv /opt/linkstore
RUN /opt/linkstore/bin/python -m pip install --no-cache-dir "/src[mcp,pdf,rst]"
# The default embedding is in its package: this needs no network, and fails the build if that changes.
RUN HF_HUB_OFFLINE=1 /opt/linkstore/bin/linkstore demo

FROM python:3.13-slim
COPY --from=build /opt/linkstore /opt/linkstore
RUN useradd --uid 1000 --create-home linkstore && mkdir /data && chown linkstore /data
USER linkstore
ENV PATH=/opt/linkstore/bin:$PATH LINKSTORE_STORE=/data/kb PYTHONUNBUFFERED=1
WORKDIR /data
EXPOSE 8766
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s CMD ["python", "-c", "from http.client import HTTPConnection as C; c = C('127.0.0.1', 8766, timeout=4); c.request('GET', '/'); c.getresponse()"]
ENTRYPOINT ["linkstore"]
CMD ["serve", "--mcp", "--no-browser", "--host", "0.0.0.0", "--allow-host", "localhost:8766", "--allow-host", "127.0.0.1:8766"]
