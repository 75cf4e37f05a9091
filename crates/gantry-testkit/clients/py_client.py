#!/usr/bin/env python3
"""Plays a script of MCP requests with the official Python SDK and prints what it saw as one JSON line.

`README.md` describes the script, the output and the exit codes, which all clients here share.
"""

import argparse
import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack
from typing import Any

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT, DiscoverResult
from pydantic import BaseModel

PROGRAM = "py_client"
USAGE = """py_client.py (--url URL | --stdio CMD ARGS...) [--era auto|legacy|2026-07-28]
                    [--header 'K: V']... [--timeout SECONDS] --script JSON"""
OPTIONS = ("--url", "--era", "--header", "--timeout", "--script")
MAX_PAGES = 100
DEFAULT_TIMEOUT_SECONDS = 60.0
# The SDK reports its own failures with these codes; no server's answer stands behind them.
LOCAL_CODES = (CONNECTION_CLOSED, REQUEST_TIMEOUT)


class StepError(Exception):
    """A step that no answer of the server ended."""


def describe(error: BaseException) -> str:
    """Names the failures themselves: the SDK wraps them in groups, one for each of its task groups."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(describe(inner) for inner in error.exceptions)
    if isinstance(error, StepError):
        return str(error)
    code = f" {error.code}" if isinstance(error, MCPError) else ""
    return f"{type(error).__name__}{code}: {error}"


def split_command(argv: list[str]) -> tuple[list[str], list[str]]:
    """Separates the server command from our options: it runs from `--stdio` to the next of them."""
    if "--stdio" not in argv:
        return argv, []
    start = argv.index("--stdio")
    end = start + 1
    while end < len(argv) and argv[end] not in OPTIONS:
        end += 1
    return argv[:start] + argv[end:], argv[start + 1 : end]


def header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise argparse.ArgumentTypeError(f"expected 'Name: value', got {text!r}")
    return name.strip(), value.strip()


def is_step(step: Any) -> bool:
    if not isinstance(step, dict):
        return False
    call = step.get("call")
    if isinstance(call, dict):
        named = isinstance(call.get("name"), str) and isinstance(call.get("arguments", {}), dict)
        return len(step) == 1 and named and set(call) <= {"name", "arguments"}
    return step == {"list": {}}


def script(text: str) -> list[dict[str, Any]]:
    try:
        steps = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from error
    if not isinstance(steps, list):
        raise argparse.ArgumentTypeError("expected a list of steps")
    for number, step in enumerate(steps):
        if not is_step(step):
            raise argparse.ArgumentTypeError(
                f'step {number} must be {{"list":{{}}}} or {{"call":{{"name":"...","arguments":{{...}}}}}}'
            )
    return steps


def parse_options(argv: list[str]) -> argparse.Namespace:
    own, command = split_command(argv)
    parser = argparse.ArgumentParser(prog=PROGRAM, usage=USAGE, add_help=False, allow_abbrev=False)
    parser.add_argument("--url")
    parser.add_argument("--era", choices=("auto", "legacy", "2026-07-28"), default="auto")
    parser.add_argument("--header", type=header, action="append", default=[])
    parser.add_argument("--timeout", type=float, default=DEFAULT_TIMEOUT_SECONDS)
    parser.add_argument("--script", type=script, required=True)
    options = parser.parse_args(own)
    if bool(options.url) == bool(command):
        parser.error("name the server with either --url URL or --stdio CMD ARGS...")
    if options.url and not options.url.startswith(("http://", "https://")):
        parser.error(f"--url must begin with http:// or https://, got {options.url!r}")
    if options.header and command:
        parser.error("--header needs --url: a stdio server reads no headers")
    if not options.timeout > 0:
        parser.error("--timeout must be a positive number of seconds")
    options.command = command
    return options


def raw(value: BaseModel) -> dict[str, Any]:
    """The fields that the server sent, under their names on the wire."""
    return value.model_dump(mode="json", by_alias=True, exclude_unset=True)


async def report_refusal(response: httpx2.Response) -> None:
    """Names an HTTP status that the SDK's own error leaves out."""
    if response.is_error:
        print(f"{PROGRAM}: HTTP {response.status_code} to {response.request.method}", file=sys.stderr)


def http_client(options: argparse.Namespace) -> httpx2.AsyncClient:
    # The SDK's limit per request must strike first: its error names the request, that of HTTP does not.
    timeout = httpx2.Timeout(options.timeout, read=2 * options.timeout)
    hooks = {"response": [report_refusal]}
    return httpx2.AsyncClient(headers=options.header, timeout=timeout, event_hooks=hooks)


async def connect(stack: AsyncExitStack, options: argparse.Namespace) -> Client:
    server: Any
    if options.url:
        http = await stack.enter_async_context(http_client(options))
        server = streamable_http_client(options.url, http_client=http)
    else:
        command, *args = options.command
        # The SDK would hide most variables; a test sets the server's environment through ours.
        server = StdioServerParameters(command=command, args=args, env=dict(os.environ))
    client = Client(server, mode=options.era, read_timeout_seconds=options.timeout)
    await stack.enter_async_context(client)
    if options.era not in ("auto", "legacy"):
        # A pinned client sends nothing on connect, so it would not learn who the server is.
        discovered = await client.session.send_discover(options.era)
        client.session.adopt(DiscoverResult.model_validate(discovered))
    return client


async def list_tools(client: Client) -> dict[str, Any]:
    definitions: list[dict[str, Any]] = []
    cursor = None
    for _ in range(MAX_PAGES):
        # A second list step must see a change, so the client's cache never answers.
        page = await client.list_tools(cursor=cursor, cache_mode="refresh")
        definitions += [raw(tool) for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            return {"tools": [tool["name"] for tool in definitions], "definitions": definitions}
    raise RuntimeError(f"tools/list did not end after {MAX_PAGES} pages")


async def call_tool(client: Client, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    seen = raw(await client.call_tool(name, arguments))
    step = {"isError": seen.get("isError", False), "content": seen.get("content", [])}
    return step | {key: seen[key] for key in ("structuredContent", "_meta") if key in seen}


async def play(client: Client, step: dict[str, Any]) -> dict[str, Any]:
    try:
        if "list" in step:
            return await list_tools(client)
        return await call_tool(client, **step["call"])
    except MCPError as error:
        if error.code in LOCAL_CODES:
            raise
        return {"error": raw(error.error)}


async def play_all(client: Client, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = []
    for step in steps:
        try:
            seen.append(await play(client, step))
        except Exception as error:
            raise StepError(f"step {len(seen)} {json.dumps(step)}: {describe(error)}") from error
    return seen


async def run(options: argparse.Namespace) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        client = await connect(stack, options)
        return {
            "protocol": client.protocol_version,
            "server": raw(client.server_info) if client.server_info else None,
            "instructions": client.instructions,
            "steps": await play_all(client, options.script),
        }


def main() -> int:
    options = parse_options(sys.argv[1:])
    try:
        seen = asyncio.run(run(options))
    except Exception as error:
        print(f"{PROGRAM}: {describe(error)}", file=sys.stderr)
        return 1
    print(json.dumps(seen, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
