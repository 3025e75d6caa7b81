"""Sends bodies of JSON Lines as they are: the description has them as a text."""

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def json_lines(ctx, value):
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
