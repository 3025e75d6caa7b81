import { html } from '../lib/html.ts'

/** The page that the `User-Agent` of checks names, for those who find it in their logs. */

export const CHECKER_PATH = '/-/checker'

export const checkerPage = (host: string): string =>
  String(html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Checks of destinations</title>
<h1>Checks of destinations</h1>
<p>${host} is a service for short links and QR codes. People have made a short link to your site,
  and visitors follow it, or it is printed. The service looks whether your page still exists.</p>
<ul>
  <li>It asks for each page once a week with HEAD. If your server refuses HEAD, it asks with GET and
    reads at most 4 KiB. A page that was not found is asked for again after a day.</li>
  <li>It never sends two requests to a host at the same time.</li>
  <li>It stores the status, and no content. It follows no links of the page.</li>
  <li>A page that answers 401, 403 or 429 is not reported as missing. So you can refuse these
    requests by their User-Agent, and nobody's link is harmed.</li>
</ul>`)
