# The log in a container: its commands, and the node on a store.
#
#     docker build -t leaderless .
#     docker run --rm -e LEADERLESS_STORE -e AWS_ACCESS_KEY_ID -e AWS_SECRET_ACCESS_KEY leaderless keys
#     docker run --rm -i leaderless node --help
#
# No engine has built it yet. Its steps were tried by hand: the files that are copied, alone in a folder; the command
# of RUN, with the pip of an empty environment; `leaderless` there, as a user without rights in that folder.
FROM python:3.11-slim-bookworm
WORKDIR /source
COPY pyproject.toml README.md LICENSE node.py run.sh ./
COPY leaderless leaderless
RUN pip install --no-cache-dir '.[s3,etcd,table]'
USER nobody
WORKDIR /tmp
ENTRYPOINT ["leaderless"]
