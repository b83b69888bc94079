"""The server: tools, resources and prompts as the protocol's SDK wants them."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError

from cobre._version import __version__
from cobre.mcp.calls import Calls
from cobre.mcp.catalogue import TOOLS, Outcome, find_tool
from cobre.mcp.contract import Settings, Tool
from cobre.mcp.prompts import PROMPTS
from cobre.mcp.resources import FIXED, TEMPLATES, request_of
from cobre.mcp.texts import encodable

INSTRUCTIONS = (
    "cobre plans hydrothermal power systems by SDDP. All paths are relative to one directory. Start with "
    "cobre_list; describe a case with cobre_inspect_case, check it with cobre_validate, change it with "
    "cobre_edit_case (a diff first, then apply), estimate the work with cobre_estimate. cobre_train, "
    "cobre_simulate and cobre_run return jobs: follow them with cobre_job_status and wait_s. Read results "
    "with cobre_query_results, explain them with cobre_explain_price and cobre_explain_water_value. A "
    "lower bound is proven only where its kind is 'bound'; say 'estimate' otherwise."
)


def make_server(settings: Settings) -> Server[Any]:
    """Return the server of a root, without a transport."""
    calls = Calls(settings)

    async def list_tools(_: ServerRequestContext[Any], params: Any) -> types.ListToolsResult:
        del params
        return types.ListToolsResult(tools=[_described(tool) for tool in TOOLS.values()])

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = find_tool(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name[:80]!r}")
        outcome = await calls.call(tool, params.arguments or {}, context.session.report_progress)
        return _result(outcome)

    async def list_resources(_: ServerRequestContext[Any], params: Any) -> types.ListResourcesResult:
        del params
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=uri, name=name, description=text, mime_type="application/json")
                for uri, (name, text) in FIXED.items()
            ]
        )

    async def list_templates(_: ServerRequestContext[Any], params: Any) -> types.ListResourceTemplatesResult:
        del params
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=part.template,
                    name=part.name,
                    description=part.description,
                    mime_type="application/json",
                )
                for part in TEMPLATES
            ]
        )

    async def read_resource(
        context: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        request = request_of(uri)
        if request is None:
            raise MCPError(types.INVALID_PARAMS, "there is no such resource", {"uri": uri[:200]})
        name, arguments, pick = request
        outcome = await calls.call(TOOLS[name], arguments, context.session.report_progress)
        if outcome.content is None:
            raise MCPError(types.INVALID_PARAMS, encodable(outcome.headline), {"problems": outcome.problems})
        content = outcome.content if pick is None else outcome.content[pick]
        text = json.dumps(content, ensure_ascii=False)
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, text=text, mime_type="application/json")]
        )

    async def list_prompts(_: ServerRequestContext[Any], params: Any) -> types.ListPromptsResult:
        del params
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=prompt.name,
                    title=prompt.title,
                    description=prompt.description,
                    arguments=[
                        types.PromptArgument(name=name, description=text, required=name in prompt.required)
                        for name, text in prompt.arguments.items()
                    ],
                )
                for prompt in PROMPTS.values()
            ]
        )

    async def get_prompt(
        _: ServerRequestContext[Any], params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        prompt = PROMPTS.get(params.name)
        if prompt is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name[:80]!r}")
        given = params.arguments or {}
        wrong = [*(set(given) - set(prompt.arguments)), *(set(prompt.required) - set(given))]
        if wrong:
            known = ", ".join(prompt.arguments)
            raise MCPError(
                types.INVALID_PARAMS, f"{prompt.name} takes {known}; wrong or missing: {sorted(wrong)}"
            )
        message = types.TextContent(type="text", text=prompt.text(given))
        return types.GetPromptResult(
            description=prompt.description, messages=[types.PromptMessage(role="user", content=message)]
        )

    return Server(
        "cobre",
        version=__version__,
        title="cobre",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=lambda name: None if (tool := find_tool(name)) is None else tool.input_schema,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def _described(tool: Tool) -> types.Tool:
    writes = tool.writes or tool.destructive
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            read_only_hint=not writes,
            destructive_hint=tool.destructive if writes else None,
            open_world_hint=False,
        ),
    )


def _result(outcome: Outcome) -> types.CallToolResult:
    """Return what the protocol carries: the answer in words, as text in JSON, and as structured content."""
    failed = outcome.content is None
    document = {"problems": outcome.problems} if failed else outcome.content
    texts = [encodable(outcome.headline), json.dumps(document, ensure_ascii=False)]
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text) for text in texts],
        structured_content=outcome.content,
        is_error=failed,
    )
