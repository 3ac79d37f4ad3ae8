"""Programs with a store alone, in transcripts (`tests.datadriven.programs`).

> p write a 1             an object holds this; its version now: v1 is the first one that was seen
> p create a 1
> p set a 2 v1            the same if it has this version
> p read a                what it holds, and in which version
> p again a v1            the same, of who has the object in this version: whether it is sent again
> p delete a b
> p list [b]              all keys, or those of a folder
> p page b b/1 2          two keys of a folder behind a key
> p fill d 0 1000 50      objects d/0000, d/0050 and so on; `p drop d 0 1000`: d/0000 to d/0999 go
> p in x/y write a 1      the same below a prefix
"""

from copy import copy
from typing import Any

from leaderless.store.port import Found, Version, all_of
from leaderless.store.wrapped import Within
from tests.store_process import Process


class Objects(Process):
    """One process, and the versions of objects that it has seen."""

    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        self._versions: list[Version] = []

    def _seen(self, version: Version) -> str:
        if version not in self._versions:
            self._versions.append(version)
        return f"v{self._versions.index(version) + 1}"

    def _known(self, name: str) -> Version:
        return self._versions[int(name[1:]) - 1]

    def _found(self, found: Found | None) -> str:
        return f"{found.value.decode()} {self._seen(found.version)}" if found else "none"

    async def _write(self, key: str, value: str) -> str:
        return self._seen(await self.store.write(key, value.encode()))

    async def _create(self, key: str, value: str) -> str:
        return self._seen(await self.store.create(key, value.encode()))

    async def _set(self, key: str, value: str, version: str) -> str:
        set_to = value.encode()
        return self._seen(await self.store.compare_and_set(key, set_to, self._known(version)))

    async def _read(self, key: str) -> str:
        return self._found(await self.store.read(key))

    async def _again(self, key: str, version: str) -> str:
        known = Found(b"", self._known(version))
        found = await self.store.read_again(key, known)
        return "unchanged" if found is known else self._found(found)

    async def _delete(self, *keys: str) -> None:
        await self.store.delete(keys)

    async def _list(self, folder: str = "") -> str:
        return " ".join([listed.key async for listed in all_of(self.store, folder)])

    async def _page(self, folder: str, after: str, limit: str) -> str:
        return " ".join(
            each.key for each in await self.store.list_objects(folder, after, int(limit))
        )

    async def _fill(self, folder: str, first: str, end: str, step: str = "1") -> None:
        for number in range(int(first), int(end), int(step)):
            await self.store.write(f"{folder}/{number:04}", b"x")

    async def _drop(self, folder: str, first: str, end: str) -> None:
        await self.store.delete([f"{folder}/{number:04}" for number in range(int(first), int(end))])

    async def _in(self, prefix: str, what: str, *words: str) -> Any:
        inside: Any = copy(self)
        inside.store = Within(self.store, prefix)
        return await inside.carry_out(what, [*words])
