import { Elysia } from 'elysia'
import { html } from '../lib/html.ts'
import { CHECKER_PATH } from './task.ts'

/** The page that the `User-Agent` of checks names, for those who find it in their logs. */
export const checkerRoutes = ({ baseUrl }: { baseUrl: string }) =>
  new Elysia({ name: 'checks' }).get(CHECKER_PATH, () => {
    const headers = { 'content-type': 'text/html; charset=utf-8' }
    return new Response(String(page(new URL(baseUrl).host)), { headers })
  })

const page = (host: string) => html`<!doctype html>
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
</ul>`
