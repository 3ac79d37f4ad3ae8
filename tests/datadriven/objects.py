"""Plays a transcript of the objects of a store.

> write a 1             an object holds this; the version that it has now: v1 is the first one that was seen
> create a 1
> set a 2 v1            the same if it has this version
> read a                what it holds, and in which version
> again a v1            the same, of who has the object in this version: whether it is sent again
> delete a b
> list [b]              all keys, or those of a folder
> page b b/1 2          two keys of a folder behind a key
> in p write a 1        the same below a prefix; `in p/q`
> fill d 0 1000 50      objects d/0000, d/0050 and so on; `drop d 0 1000` deletes all from d/0000 to d/0999
"""

from leaderless.store.port import Conflict, Found, Store, all_of
from leaderless.store.wrapped import Within
from tests.datadriven.runner import AsyncPlayer


class Objects(AsyncPlayer):
    """Carries commands out on one store."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store
        self._versions: list[str] = []

    async def told(self, command: str) -> str:
        name, *words = command.split()
        store = self._store
        if name == "in":
            store = Within(store, words[0])
            name, words = words[1], words[2:]
        try:
            told: str = await getattr(self, f"_{name}")(store, *words)
        except Conflict:
            return "conflict"
        return told

    def _seen(self, version: str) -> str:
        if version not in self._versions:
            self._versions.append(version)
        return f"v{self._versions.index(version) + 1}"

    def _known(self, name: str) -> str:
        return self._versions[int(name[1:]) - 1]

    async def _write(self, store: Store, key: str, value: str) -> str:
        return self._seen(await store.write(key, value.encode()))

    async def _create(self, store: Store, key: str, value: str) -> str:
        return self._seen(await store.create(key, value.encode()))

    async def _set(self, store: Store, key: str, value: str, version: str) -> str:
        return self._seen(await store.compare_and_set(key, value.encode(), self._known(version)))

    async def _read(self, store: Store, key: str) -> str:
        found = await store.read(key)
        return f"{found.value.decode()} {self._seen(found.version)}" if found else "none"

    async def _again(self, store: Store, key: str, version: str) -> str:
        known = Found(b"", self._known(version))
        found = await store.read_again(key, known)
        if found is known:
            return "unchanged"
        return f"{found.value.decode()} {self._seen(found.version)}" if found else "none"

    async def _delete(self, store: Store, *keys: str) -> str:
        await store.delete(keys)
        return ""

    async def _list(self, store: Store, folder: str = "") -> str:
        return " ".join([listed.key async for listed in all_of(store, folder)])

    async def _page(self, store: Store, folder: str, after: str, limit: str) -> str:
        return " ".join(each.key for each in await store.list_objects(folder, after, int(limit)))

    async def _fill(self, store: Store, folder: str, first: str, end: str, step: str = "1") -> str:
        for number in range(int(first), int(end), int(step)):
            await store.write(f"{folder}/{number:04}", b"x")
        return ""

    async def _drop(self, store: Store, folder: str, first: str, end: str) -> str:
        await store.delete([f"{folder}/{number:04}" for number in range(int(first), int(end))])
        return ""
