"""Uses a service through clients of YOURLS and Shlink, and prints what they returned as JSON.

Arguments: the address of the service, an API key that can manage links.
"""

import json
import sys
import time

import pyourls3
import requests
import shlink
import yourls
from mcp_shlink.client import CreateShortUrlRequest, ShlinkClient

BASE, KEY = sys.argv[1:3]
API = f"{BASE}/yourls-api.php"
URL = "https://example.com/"


def follow(code):
    requests.get(f"{BASE}/{code}", allow_redirects=False, timeout=30)


def top_of(client):
    """The list with the most hits, which orders them by those that are stored."""
    for _ in range(600):
        (top,), totals = client.stats(filter="top", limit=1)
        if top.clicks > 0:
            break
        time.sleep(0.05)
    return top, totals


def error_of(call):
    """The name of the exception that a call raises, and its text."""
    try:
        call()
    except Exception as error:
        return [type(error).__name__, str(error)]
    return None


def use_yourls():
    client = yourls.YOURLSClient(API, signature=KEY)
    created = client.shorten(URL + "one", keyword="YOURLS01", title="One")
    follow("YOURLS01")
    client.shorten(URL + "two")
    top, totals = top_of(client)
    stranger = yourls.YOURLSClient(API, signature="no-key")
    person = yourls.YOURLSClient(API, username="ann", password="secret")
    return {
        "created": [created.shorturl, created.keyword, created.title],
        "expanded": client.expand("YOURLS01"),
        "clicks": client.url_stats("YOURLS01").clicks,
        "top": [top.url, top.clicks],
        "links": [totals.total_links, client.db_stats().total_links],
        "taken": error_of(lambda: client.shorten(URL + "three", keyword="YOURLS01")),
        "no url": error_of(lambda: client.shorten("")),
        "loop": error_of(lambda: client.shorten(created.shorturl)),
        "wrong key": error_of(stranger.db_stats),
        "password": error_of(person.db_stats),
    }


def use_pyourls3():
    client = pyourls3.Yourls(BASE, key=KEY)
    created = client.shorten(URL + "four", keyword="YOURLS04", title="Four")
    follow("YOURLS04")
    return {
        "created": [created["shorturl"], created["status"], created["statusCode"]],
        "expanded": client.expand("YOURLS04"),
        "clicks": client.url_stats("YOURLS04")["clicks"],
        "links": client.stats()["total_links"],
        "again": error_of(lambda: client.shorten(URL + "four")),
        "taken": error_of(lambda: client.shorten(URL + "five", keyword="YOURLS04")),
        "wrong key": error_of(lambda: pyourls3.Yourls(BASE, key="no-key")),
    }


def use_mcp_shlink():
    client = ShlinkClient(BASE, KEY)
    wanted = CreateShortUrlRequest(
        long_url=URL + "six",
        custom_slug="SHLINK06",
        tags=["spring"],
        valid_until="2027-01-01T00:00:00+01:00",
        max_visits=10,
    )
    created = client.create_short_url(wanted)
    follow("SHLINK06")
    found = client.get_short_url("SHLINK06")
    listed = client.list_short_urls()
    answer = {
        "created": created.model_dump(),
        "visits": found.visits_count,
        "meta": found.meta,
        "listed": [listed.data[0].short_code, listed.data[0].visits_count],
        "total": listed.pagination["totalItems"],
        "taken": error_of(lambda: client.create_short_url(wanted)),
        "wrong key": error_of(ShlinkClient(BASE, "no-key").list_short_urls),
    }
    client.delete_short_url("SHLINK06")
    return {**answer, "deleted": error_of(lambda: client.get_short_url("SHLINK06"))}


def use_pyshlink():
    client = shlink.Shlink(KEY, BASE)
    found = client.get_short_url("YOURLS01")
    return {
        "found": [found["longUrl"], found["visitsSummary"]["total"]],
        "total": client.list_short_urls()["shortUrls"]["pagination"]["totalItems"],
        "unknown": client.get_short_url("NOSUCH26"),
    }


json.dump(
    {
        "yourls": use_yourls(),
        "pyourls3": use_pyourls3(),
        "mcp-shlink": use_mcp_shlink(),
        "PyShlink": use_pyshlink(),
    },
    sys.stdout,
)
