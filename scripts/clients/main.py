"""A program with the client that openapi-generator writes for Python."""

import os

import openapi_client as hopcode
from openapi_client.exceptions import NotFoundException


def check(is_right: bool, what: str) -> None:
    if not is_right:
        raise SystemExit(f"wrong: {what}")


configuration = hopcode.Configuration(api_key={"apiKey": os.environ["API_KEY"]})
with hopcode.ApiClient(configuration) as client:
    links = hopcode.LinksApi(client)

    body = hopcode.ShortenBody(url="https://example.com/python")
    created = links.shorten(body)
    check(not created.reused and created.url == body.url and created.passcode, "shorten")
    reused = links.shorten(body)
    check(reused.reused and reused.passcode is None and reused.code == created.code, "reuse")
    reserved = links.reserve(hopcode.ReserveBody(code="CLIENTPYTHON1"))
    check(reserved.code == "CLIENTPYTHON1" and reserved.url is None, "reserve")

    urls = ["https://example.com/python/batch", "https://"]
    ok, failed = links.bulk_shorten(hopcode.BulkShortenBody(urls=urls)).results
    check(ok.ok and ok.code, "batch, created")
    check(not failed.ok and failed.error, "batch, refused")

    change = hopcode.LinkChange(title="Poster", tags=["spring"])
    changed = links.patch_link(created.code, change)
    check(changed.title == "Poster" and changed.tags == ["spring"], "change")
    changed = links.patch_link(created.code, hopcode.LinkChange(title=None))
    check(changed.title is None and changed.tags == ["spring"], "clear")

    line = '{"code":"CLIENTPYTHON2","url":"https://example.com/python/import","hits":5000000000}\n'
    imported = links.import_links(line)
    check(imported.links == 1 and imported.results[0].outcome == "created", "import")
    page = links.list_links(limit=200, search="CLIENTPYTHON2")
    check(page.total == 1 and page.items[0].hit_count == 5_000_000_000, "list")
    check(links.lookup("CLIENTPYTHON1").url is None, "lookup")

    named = {"code": created.code, "passcode": created.passcode}
    update = hopcode.UpdateBody(**named, url="https://example.com/python/2")
    check(links.update(update).updated, "update")
    check(links.delete_link(hopcode.DeleteBody(**named)).deleted, "delete")
    try:
        links.get_link(created.code)
        check(False, "get a deleted link")
    except NotFoundException as error:
        check(error.status == 404, "get a deleted link")
