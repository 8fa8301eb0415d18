"""Results of upstream tools: read from the wire, kept in one model, and handed on in the form the host takes.

    result = await read_result(wire, server="docs", tool="find", duration_ms=12.5, request_id="7")
    answer = await to_tool_result(result, context, settings)

Every block keeps its place among the others. Sizes are those of the decoded data; "the cap" is
`TOOLBOX_UPSTREAM_MEDIA_BYTES` (256 KiB) for one item, and four times that for all media of one result.

    upstream block                  ContentBlock        sent to the client
    ------------------------------  ------------------  --------------------------------------------------
    text                            text                text
    image                           image               image up to the cap, else a link to its file;
                                                        stored as a file in any case
    audio                           audio               audio up to the cap, else a link to its file
    image, audio of another media   what the first      as that
      type, or of none              bytes tell, else
                                    binary (blob)
    resource with text              binary (text):      resource with text; past 12,000 characters cut,
                                    its UTF-8           with a marker and a link to a file with all of it
    resource with blob              binary (blob)       resource with blob up to the cap, else a link to
                                                        its file
    the same, of an image           binary (blob)       as an image; its uri is in the block's
                                                        _meta["toolbox/resource"]. SVG, which no model
                                                        reads as an image, stays a resource
    resource with text and blob     two binary          two resources
    resource with neither           binary (link)       resource_link; without a usable uri its JSON as text
    resource_link                   binary (link)       resource_link, never fetched; without a usable uri
                                                        its JSON as text
    any other type with data        binary (blob)       as a resource with blob, its uri
      (base64) and mimeType                             toolbox://content/TYPE
    anything else                   text: its JSON      text
    empty image or audio, data      text that says      text
      that is no standard base64,   what was left out
      more than 100 MiB             and why
    media past the cap that cannot  as above            text that says what was left out and why
      be stored
    content: none                   ()                  no block; for an error its text
    structuredContent               structured_content  as it is; what is no object as {"result": …}
    isError                         is_error, error     isError

`annotations` and `_meta` stay with their block. What the host's reader has no place for (`title`, `icons` and
`_meta` of a link, unknown fields, illegal annotations) is in the result's `_meta["toolbox/upstream"].blocks`,
by the block's index. There are also `server`, `tool`, `durationMs`, `requestId`; for stored files `attachments`
(name, uri, mimeType, size, path, source) and `media_paths`; and `notStored`: why a file could not be stored.
"""

from shared.upstream.content.convert import from_wire, read_result, to_tool_result
from shared.upstream.content.model import (
    AudioContent,
    BinaryContent,
    BinaryForm,
    ContentBlock,
    ImageContent,
    MCPToolResult,
    TextContent,
)

__all__ = [
    "AudioContent",
    "BinaryContent",
    "BinaryForm",
    "ContentBlock",
    "ImageContent",
    "MCPToolResult",
    "TextContent",
    "from_wire",
    "read_result",
    "to_tool_result",
]
