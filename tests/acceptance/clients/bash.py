"""Runs with the published package `supermemory-bash` and nothing of ours: `bash.py URL KEY TAG`."""

from __future__ import annotations

import asyncio
import select
import sys
import time

from supermemory_bash import create_bash

WAIT_S = 90.0


async def tour(url: str, key: str, tag: str) -> None:
    made = await create_bash(api_key=key, container_tag=tag, base_url=url)
    bash = made.bash

    async def said(line: str, *, code: int = 0) -> str:
        result = await bash.exec(line)
        assert result.exit_code == code, (line, result)
        return str(result.stdout)

    await said("mkdir -p /work/deep && echo 'the ropes were mended by Ida' > /work/ropes.md")
    assert await said("cat /work/ropes.md") == "the ropes were mended by Ida\n"
    await said("echo 'second line' >> /work/ropes.md && cp /work/ropes.md /work/copy.md && mv /work/copy.md /work/moved.md")
    assert (await said("cat /work/moved.md | wc -l")).strip() == "2"
    assert "moved.md" in await said("ls /work")
    assert await said("grep -c ropes /work/ropes.md") == "1\n"
    await said("rm /work/moved.md")
    assert (await bash.exec("cat /work/moved.md")).exit_code != 0
    fresh = (await create_bash(api_key=key, container_tag=tag, base_url=url)).bash
    assert (await fresh.exec("cat /work/ropes.md")).stdout == "the ropes were mended by Ida\nsecond line\n"
    await said("mkdir -p /memory && echo 'I prefer tea over coffee.' > /memory/me.md")
    # Its cache holds a profile for 150 s: one that was read too early would be the answer to the end.
    uncached = (await create_bash(api_key=key, container_tag=tag, base_url=url, cache_ttl_ms=0)).bash
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        found = (await uncached.exec("sgrep 'who mended the ropes'")).stdout
        profile = (await uncached.exec("cat /profile.md")).stdout
        if "/work/ropes.md" in found and "I prefer tea over coffee." in profile:
            return
        await asyncio.to_thread(select.select, [], [], [], 0.3)
    raise AssertionError((found, profile))


asyncio.run(tour(*sys.argv[1:]))
