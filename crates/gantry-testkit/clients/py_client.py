#!/usr/bin/env python3
"""Plays a script of MCP requests with the official Python SDK and prints what it saw as one JSON line.

`README.md` describes the script, the output and the exit codes, which all clients here share.
"""

import argparse
import asyncio
import json
import os
import sys
import warnings
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    CallToolResult,
    CreateMessageResult,
    DiscoverResult,
    ElicitResult,
    PromptReference,
    Request,
    ResourceTemplateReference,
    Result,
    TextContent,
)
from pydantic import BaseModel, ConfigDict, TypeAdapter

PROGRAM = "py_client"
USAGE = """py_client.py (--url URL | --stdio CMD ARGS...) [--era auto|legacy|2026-07-28]
                    [--header 'K: V']... [--timeout SECONDS] [--elicit accept|decline|cancel]
                    [--answer JSON] [--when FILE] [--sample TEXT] [--log LEVEL] [--tasks] --script JSON"""
OPTIONS = (
    "--url", "--era", "--header", "--timeout", "--elicit", "--answer", "--when", "--sample", "--log", "--tasks",
    "--script",
)  # fmt: skip
# The keys of each step with the kind of their values; a `?` marks those that may be absent.
STEPS: dict[str, dict[str, type]] = {
    "list": {},
    "resources": {},
    "templates": {},
    "prompts": {},
    "call": {"name": str, "arguments?": dict, "progress?": bool, "cancel?": bool},
    "read": {"uri": str},
    "prompt": {"name": str, "arguments?": dict},
    "complete": {"ref": dict, "argument": dict},
    "request": {"method": str, "params?": dict},
}
SHAPES = ", ".join(f'{{"{name}":{{{",".join(keys)}}}}}' for name, keys in STEPS.items())
SIMPLEST = {"string": "text", "integer": 1, "number": 1, "boolean": True, "array": []}
MODERN = "2026-07-28"
MAX_PAGES = 100
DEFAULT_TIMEOUT_SECONDS = 60.0
LOOK_SECONDS = 0.02
ANYTHING = TypeAdapter(dict[str, Any])
# The SDK reports its own failures with these codes; no server's answer stands behind them.
LOCAL_CODES = (CONNECTION_CLOSED, REQUEST_TIMEOUT)


class StepError(Exception):
    """A step that no answer of the server ended."""


class Withdrawn(Exception):
    """A call that became a task, which was cancelled."""


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
    if not isinstance(step, dict) or len(step) != 1:
        return False
    [(name, params)] = step.items()
    if name not in STEPS or not isinstance(params, dict):
        return False
    keys = {key.rstrip("?"): (kind, key.endswith("?")) for key, kind in STEPS[name].items()}
    present = all(key in params or optional for key, (_, optional) in keys.items())
    return present and all(key in keys and isinstance(value, keys[key][0]) for key, value in params.items())


def answer(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from error
    if not isinstance(content, dict):
        raise argparse.ArgumentTypeError("expected an object")
    return content


def script(text: str) -> list[dict[str, Any]]:
    try:
        steps = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from error
    if not isinstance(steps, list):
        raise argparse.ArgumentTypeError("expected a list of steps")
    for number, step in enumerate(steps):
        if not is_step(step):
            raise argparse.ArgumentTypeError(f"step {number} must be one of {SHAPES}")
    return steps


def parse_options(argv: list[str]) -> argparse.Namespace:
    own, command = split_command(argv)
    parser = argparse.ArgumentParser(prog=PROGRAM, usage=USAGE, add_help=False, allow_abbrev=False)
    parser.add_argument("--url")
    parser.add_argument("--era", choices=("auto", "legacy", "2026-07-28"), default="auto")
    parser.add_argument("--header", type=header, action="append", default=[])
    parser.add_argument("--timeout", type=float, default=DEFAULT_TIMEOUT_SECONDS)
    parser.add_argument("--elicit", choices=("accept", "decline", "cancel"))
    parser.add_argument("--answer", type=answer, default={})
    parser.add_argument("--when", type=Path)
    parser.add_argument("--tasks", action="store_true")
    parser.add_argument("--sample")
    parser.add_argument("--log")
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


class Heard:
    """Answers what a server asks, as the options say, and keeps it with the log messages of the current step."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.begin()

    def begin(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.logged: list[dict[str, Any]] = []
        self.tasks: list[dict[str, Any]] = []
        self.cancel = False

    def callbacks(self) -> dict[str, Any]:
        """A callback is a capability, so there is one only for what the options name."""
        found: dict[str, Any] = {"logging_callback": self.log, "log_level": self.options.log}
        if self.options.elicit:
            found["elicitation_callback"] = self.elicit
        if self.options.sample is not None:
            found["sampling_callback"] = self.sample
        if self.options.tasks:
            found["extensions"] = [Tasks(self)]
        return found

    async def log(self, params: BaseModel) -> None:
        self.logged.append(raw(params))

    async def elicit(self, _: Any, params: Any) -> ElicitResult:
        self.asked.append({"method": "elicitation/create", "params": raw(params)})
        while self.options.when and not self.options.when.exists():
            await anyio.sleep(LOOK_SECONDS)
        action = self.options.elicit
        if action != "accept" or params.mode == "url":
            return ElicitResult(action=action)
        return ElicitResult(action=action, content=fill(params.requested_schema) | self.options.answer)

    async def sample(self, _: Any, params: BaseModel) -> CreateMessageResult:
        self.asked.append({"method": "sampling/createMessage", "params": raw(params)})
        content = TextContent(type="text", text=self.options.sample)
        return CreateMessageResult(role="assistant", content=content, model="scripted", stop_reason="endTurn")


class Task(Result):
    """A call that became a task."""

    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"]
    task_id: str


class AnyRequest(Request[dict[str, Any], str]):
    """A request that the SDK has no type for."""


class TaskRequest(AnyRequest):
    name_param = "taskId"


async def request(session: ClientSession, method: str, params: dict[str, Any]) -> dict[str, Any]:
    kind = TaskRequest if method.startswith("tasks/") else AnyRequest
    return await session.send_request(kind(method=method, params=params), ANYTHING)


class Tasks(ClientExtension):
    """Asks for a call that became a task until it is over, and keeps what it was told."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, heard: Heard) -> None:
        self.heard = heard

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=Task, resolve=self.finish)]

    async def finish(self, task: Task, context: ClaimContext) -> CallToolResult:
        about = {"taskId": task.task_id}
        last = raw(task)
        self.heard.tasks.append(last)
        if self.heard.cancel:
            await request(context.session, "tasks/cancel", about)
        while last["status"] in ("working", "input_required"):
            await anyio.sleep(last["pollIntervalMs"] / 1000)
            last = await request(context.session, "tasks/get", about)
            self.heard.tasks.append(last)
        match last["status"]:
            case "completed":
                return CallToolResult.model_validate(last["result"])
            case "cancelled":
                raise Withdrawn
            case _:
                raise MCPError(**last["error"])


def fill(schema: dict[str, Any]) -> dict[str, Any]:
    """What a person who changes nothing would send: every default, and something for what is required without one."""

    def value(field: dict[str, Any]) -> Any:
        choices = field.get("enum") or [choice["const"] for choice in field.get("oneOf", [])]
        return field.get("default", choices[0] if choices else SIMPLEST.get(field.get("type", "")))

    required = schema.get("required", [])
    fields = schema.get("properties", {}).items()
    return {name: value(field) for name, field in fields if "default" in field or name in required}


async def connect(stack: AsyncExitStack, options: argparse.Namespace, heard: Heard) -> Client:
    server: Any
    if options.url:
        http = await stack.enter_async_context(http_client(options))
        server = streamable_http_client(options.url, http_client=http)
    else:
        command, *args = options.command
        # The SDK would hide most variables; a test sets the server's environment through ours.
        server = StdioServerParameters(command=command, args=args, env=dict(os.environ))
    client = Client(server, mode=options.era, read_timeout_seconds=options.timeout, **heard.callbacks())
    await stack.enter_async_context(client)
    if options.era not in ("auto", "legacy"):
        # A pinned client sends nothing on connect, so it would not learn who the server is.
        discovered = await client.session.send_discover(options.era)
        client.session.adopt(DiscoverResult.model_validate(discovered))
    if options.log and client.protocol_version < MODERN:
        await client.set_logging_level(options.log)
    return client


async def pages(fetch: Callable[..., Awaitable[Any]], name: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    cursor = None
    for _ in range(MAX_PAGES):
        # A second list step must see a change, so the client's cache never answers.
        page = await fetch(cursor=cursor, cache_mode="refresh")
        items += [raw(item) for item in getattr(page, name)]
        cursor = page.next_cursor
        if cursor is None:
            return items
    raise RuntimeError(f"a list did not end after {MAX_PAGES} pages")


async def call_tool(client: Client, heard: Heard, call: dict[str, Any]) -> dict[str, Any]:
    reports: list[dict[str, Any]] = []
    progress, cancel = call.get("progress", False), call.get("cancel", False)
    heard.cancel = cancel
    step: dict[str, Any] = {"cancelled": True}
    with anyio.CancelScope() as scope:

        async def report(progress: float, total: float | None, message: str | None) -> None:
            reports.append({"progress": progress, "total": total, "message": message})
            if cancel:
                scope.cancel()

        watcher = report if progress or cancel else None
        seen = raw(await client.call_tool(call["name"], call.get("arguments"), progress_callback=watcher))
        step = {"isError": seen.get("isError", False), "content": seen.get("content", [])}
        step |= {key: seen[key] for key in ("structuredContent", "_meta") if key in seen}
    return step | ({"progress": reports} if watcher else {})


async def play(client: Client, heard: Heard, step: dict[str, Any]) -> dict[str, Any]:
    [(name, params)] = step.items()
    match name:
        case "list":
            definitions = await pages(client.list_tools, "tools")
            return {"tools": [tool["name"] for tool in definitions], "definitions": definitions}
        case "resources":
            return {"resources": await pages(client.list_resources, "resources")}
        case "templates":
            return {"templates": await pages(client.list_resource_templates, "resource_templates")}
        case "prompts":
            return {"prompts": await pages(client.list_prompts, "prompts")}
        case "read":
            return {"contents": raw(await client.read_resource(params["uri"]))["contents"]}
        case "prompt":
            return {"messages": raw(await client.get_prompt(params["name"], params.get("arguments")))["messages"]}
        case "complete":
            kind = PromptReference if params["ref"]["type"] == "ref/prompt" else ResourceTemplateReference
            found = await client.complete(kind.model_validate(params["ref"]), params["argument"])
            return {"completion": raw(found)["completion"]}
        case "request":
            return {"result": await request(client.session, params["method"], params.get("params", {}))}
        case _:
            return await call_tool(client, heard, params)


async def play_one(client: Client, heard: Heard, step: dict[str, Any]) -> dict[str, Any]:
    heard.begin()
    try:
        seen = await play(client, heard, step)
    except Withdrawn:
        seen = {"cancelled": True}
    except MCPError as error:
        if error.code in LOCAL_CODES:
            raise
        seen = {"error": raw(error.error)}
    return seen | {name: found for name in ("asked", "logged", "tasks") if (found := getattr(heard, name))}


async def play_all(client: Client, heard: Heard, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = []
    for step in steps:
        try:
            seen.append(await play_one(client, heard, step))
        except Exception as error:
            raise StepError(f"step {len(seen)} {json.dumps(step)}: {describe(error)}") from error
    return seen


async def run(options: argparse.Namespace) -> dict[str, Any]:
    heard = Heard(options)
    async with AsyncExitStack() as stack:
        client = await connect(stack, options, heard)
        return {
            "protocol": client.protocol_version,
            "server": raw(client.server_info) if client.server_info else None,
            "instructions": client.instructions,
            "steps": await play_all(client, heard, options.script),
        }


def main() -> int:
    options = parse_options(sys.argv[1:])
    # What the newest revision deprecates is what these clients are here to use.
    warnings.simplefilter("ignore")
    try:
        seen = asyncio.run(run(options))
    except Exception as error:
        print(f"{PROGRAM}: {describe(error)}", file=sys.stderr)
        return 1
    print(json.dumps(seen, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
