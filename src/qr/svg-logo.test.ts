import { expect, test } from 'bun:test'
import { findSvgProblem, plainSvg } from './svg-logo.ts'

const XMLNS = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
const svgOf = (inner: string) => `<svg ${XMLNS} viewBox="0 0 9 9">${inner}</svg>`

const accepted = [
  '<path d="M0 0h9v9z" fill="#123"/>',
  '<style>.a{fill:url(#g)}</style><defs><linearGradient id="g"/></defs><path class="a" d="M0 0"/>',
  '<defs><path id="p" d="M0 0h9"/></defs><clipPath id="c"><use xlink:href="#p"/></clipPath>',
  '<g><title>A &gt; B</title><g transform="rotate(3)"><circle r="2"/></g></g>',
  '<path d="M0 0" id="a>b"/>',
]

test.each(accepted)('the SVG %s is accepted', (inner) => {
  expect(findSvgProblem(svgOf(inner))).toBeUndefined()
})

test('a prolog, comments and a plain document type are removed or accepted', () => {
  const doctype =
    '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/1999/svg11.dtd">'
  const start = '\uFEFF<?xml version="1.0"?>\n<!-- <script> -->'
  const text = `${start}${doctype}${svgOf('<!-- a\nb --><g/>')}`
  expect(findSvgProblem(plainSvg(text))).toBeUndefined()
  expect(plainSvg(text)).toBe(`<?xml version="1.0"?>\n${svgOf('<g/>')}`)
})

const SCRIPT = 'The SVG contains a script or a web page.'
const IMAGE = 'The SVG contains another image. Use shapes only.'
const OUTSIDE = 'The SVG refers to something outside of it. Remove its links and imports.'
const EFFECT = 'The SVG contains a filter or a pattern. Export it without shadows and effects.'
const COMPLEX = 'The SVG is too complex. Flatten its groups, masks and copies.'
const DAMAGED = 'The SVG declares a document type with entities, or is damaged. Export it again.'

const refused = [
  ['<script>alert(1)</script>', SCRIPT],
  ['<svg:script xmlns:svg="http://www.w3.org/2000/svg"/>', SCRIPT],
  ['<path d="M0 0" onload="alert(1)"/>', SCRIPT],
  ['<path d="M0 0"\nonClick = "alert(1)"/>', SCRIPT],
  ['<foreignObject><p>web</p></foreignObject>', SCRIPT],
  ['<image width="9" height="9"/>', IMAGE],
  ['<x:image xmlns:x="http://www.w3.org/2000/svg"/>', IMAGE],
  ['<use xlink:href="https://example.com/a.svg#b"/>', OUTSIDE],
  ["<use href='data:image/svg+xml;base64,AAAA'/>", OUTSIDE],
  ['<use xlink:href="file:///etc/passwd"/>', OUTSIDE],
  ['<a href="https://example.com/"><path d="M0 0"/></a>', OUTSIDE],
  ['<style>@import url("https://example.com/a.css");</style>', OUTSIDE],
  ['<style>.a{fill:url(//example.com/a.svg)}</style>', OUTSIDE],
  ['<path style="fill:url( \'https://example.com\' )"/>', OUTSIDE],
  ['<text>Brand</text>', 'The SVG contains text. Convert the text to paths.'],
  ['<filter id="f"><feGaussianBlur stdDeviation="99"/></filter>', EFFECT],
  ['<pattern id="p" width="1e9" height="1e9"/>', EFFECT],
  ['<![CDATA[<script>]]>', DAMAGED],
  ['<?xml-stylesheet href="a.css"?>', DAMAGED],
  ['<!-- never closed', DAMAGED],
  ['<g>'.repeat(65), COMPLEX],
  ['<g a="/>">'.repeat(65), COMPLEX],
  ['<use href="#a"/>'.repeat(17), COMPLEX],
  ['<mask id="m"/><clipPath id="c"/>'.repeat(9), COMPLEX],
] as const

test.each(refused)('the SVG %s is refused', (inner, problem) => {
  expect(findSvgProblem(plainSvg(svgOf(inner)))).toBe(problem)
})

test('an SVG that declares entities is refused', () => {
  const bomb = `<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>${svgOf('&b;')}`
  expect(findSvgProblem(plainSvg(bomb))).toBe(DAMAGED)
})
