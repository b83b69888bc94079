"""How clients reach the server: standard input and output, or HTTP."""

from __future__ import annotations

import hmac
import io
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import anyio
import uvicorn
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from cobre.errors import CobreError

PATH: Final = "/mcp"
LEAST_TOKEN_BYTES: Final = 16
_INTERRUPTED: Final = 130
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


def serve_stdio(server: Server[Any]) -> None:
    """Serve the process that started this one, until it closes standard input.

    Standard output carries the protocol and nothing else: whatever else this process or a library of it
    prints goes to standard error, and processes that it starts find neither.
    """
    wire_in, wire_out = _claimed(0), _claimed(1)
    # A thread waits for input, and an orderly end would wait for it; there is nothing to save.
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(_INTERRUPTED))

    async def serve() -> None:
        reader = anyio.wrap_file(io.TextIOWrapper(wire_in, encoding="utf-8", errors="replace"))
        writer = anyio.wrap_file(io.TextIOWrapper(wire_out, encoding="utf-8"))
        async with stdio_server(reader, writer) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)


def _claimed(descriptor: int) -> Any:
    """Return a standard stream, and put another in its place: nothing to read, standard error to write."""
    own = os.dup(descriptor)
    os.set_inheritable(own, False)
    other = os.open(os.devnull, os.O_RDONLY) if descriptor == 0 else os.dup(2)
    os.dup2(other, descriptor)
    os.close(other)
    return os.fdopen(own, "rb" if descriptor == 0 else "wb")


@dataclass(frozen=True)
class Address:
    """Where the server listens, and whom it answers.

    Attributes
    ----------
    host, port
        0 = any free port.
    token
        What clients must know; needed unless the host is of this machine alone.
    names
        Further names under which clients reach the server (header ``Host``).
    origins
        Pages that may talk to it (header ``Origin``), besides its own.
    """

    host: str = "127.0.0.1"
    port: int = 3000
    token: str | None = None
    names: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse an address that anybody could use.

        Raises
        ------
        CobreError
            Kind ``TokenNeeded``, ``InvalidToken`` or ``HostNameNeeded``.
        """
        if self.token is not None and len(self.token.encode()) < LEAST_TOKEN_BYTES:
            raise CobreError(
                "InvalidToken", f"the token has fewer than {LEAST_TOKEN_BYTES} bytes", {"field": "token"}
            )
        if self.token is None and self.host not in _LOOPBACK:
            raise CobreError(
                "TokenNeeded",
                f"{self.host} can be reached by others, so clients need a token",
                {"field": "host", "value": self.host},
                "set COBRE_MCP_TOKEN or give --token-file, or listen on 127.0.0.1",
            )
        if self.host in ("0.0.0.0", "::", "") and not self.names:
            raise CobreError(
                "HostNameNeeded",
                "a server on all addresses needs the name under which clients reach it",
                {"field": "host", "value": self.host},
                "give --allow-host NAME, as it stands in the address that clients use",
            )

    def security(self, port: int) -> TransportSecuritySettings:
        """Return which values of ``Host`` and ``Origin`` are answered."""
        own = _LOOPBACK if self.host in _LOOPBACK else {self.host}
        names = [f"[{name}]" if ":" in name else name for name in (*sorted(own), *self.names)]
        hosts = [f"{name}:{port}" for name in names]
        origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]
        return TransportSecuritySettings(
            allowed_hosts=[*hosts, *self.names], allowed_origins=[*origins, *self.origins]
        )


def serve_http(server: Server[Any], address: Address) -> None:
    """Serve clients by streamable HTTP until a signal ends this process.

    Raises
    ------
    CobreError
        When the address cannot be used.
    """
    address.check()
    os.dup2(2, 1)
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listening = socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        raise CobreError(
            "AddressInUse",
            f"{address.host}:{address.port} cannot be listened on: {error.strerror or error}",
            {"host": address.host, "port": address.port},
            "choose another --port; 0 takes a free one",
        ) from error
    port = int(listening.getsockname()[1])
    application: Any = server.streamable_http_app(
        streamable_http_path=PATH, transport_security=address.security(port)
    )
    if address.token is not None:
        application = require_token(application, address.token)
    config = uvicorn.Config(
        application, log_level="warning", access_log=False, ws="none", timeout_graceful_shutdown=3
    )
    host = f"[{address.host}]" if family == socket.AF_INET6 else address.host
    print(f"cobre mcp: listening on http://{host}:{port}{PATH}", file=sys.stderr, flush=True)
    anyio.run(_serve, uvicorn.Server(config), [listening])


async def _serve(server: uvicorn.Server, sockets: Sequence[socket.socket]) -> None:
    await server.serve(sockets=list(sockets))


def require_token(application: Application, token: str) -> Application:
    """Return the application behind a check of ``Authorization: Bearer TOKEN``, which comes first."""
    wanted = f"Bearer {token}".encode()

    async def guarded(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
            if len(given) != 1 or not hmac.compare_digest(given[0], wanted):
                await _refuse(send)
                return
        elif scope["type"] != "lifespan":
            return
        await application(scope, receive, send)

    return guarded


async def _refuse(send: Send) -> None:
    headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer"), (b"content-length", b"12")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": b"Unauthorized"})
