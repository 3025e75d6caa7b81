/* Charts: the value of a bar by pointer and by arrow keys. Without this script, by tooltips. */
;(() => {
  const bars = (svg) => [...svg.querySelectorAll('g > g')]

  /** Makes a chart a tab stop, and takes the texts of its tooltips. */
  const enhanceChart = (svg) => {
    svg.dataset.ready = ''
    svg.tabIndex = 0
    for (const bar of bars(svg)) {
      const title = bar.querySelector('title')
      bar.dataset.tip = title.textContent
      title.remove()
    }
    svg.insertAdjacentHTML(
      'afterend',
      '<div class="tip" hidden aria-hidden="true"></div>' +
        '<div class="visually-hidden" role="status"></div>',
    )
  }

  /** Shows one bar's value; `index` undefined: none. */
  const show = (svg, index) => {
    const all = bars(svg)
    const bar = all[index]
    for (const other of svg.querySelectorAll('g.at')) other.classList.remove('at')
    const tip = svg.parentElement.querySelector('.tip')
    tip.hidden = !bar
    if (!bar) {
      delete svg.dataset.at
      return
    }
    svg.dataset.at = index
    bar.classList.add('at')
    tip.textContent = bar.dataset.tip
    const box = svg.parentElement.getBoundingClientRect()
    const place = bar.querySelector('.place').getBoundingClientRect()
    const middle = place.left + place.width / 2 - box.left
    const left = Math.min(Math.max(0, middle - tip.offsetWidth / 2), box.width - tip.offsetWidth)
    tip.style.left = `${left}px`
    const drawn = bar.querySelector('.bar')
    const top = (drawn ?? bar).getBoundingClientRect()[drawn ? 'top' : 'bottom'] - box.top
    tip.style.top = `${Math.max(0, top - tip.offsetHeight - 6)}px`
    return bar.dataset.tip
  }

  const chartOf = (target) => target.closest?.('svg[data-chart]')

  /** The chart whose bar the pointer shows. */
  let pointed

  document.addEventListener('pointermove', ({ target }) => {
    const bar = target.closest?.('svg[data-chart] g[data-tip]')
    const svg = bar && chartOf(bar)
    if (pointed && pointed !== svg) show(pointed)
    pointed = svg
    if (svg) show(svg, bars(svg).indexOf(bar))
  })

  document.addEventListener('keydown', (event) => {
    const svg = chartOf(event.target)
    if (!svg) return
    const last = bars(svg).length - 1
    const at = svg.dataset.at === undefined ? undefined : Number(svg.dataset.at)
    const next = {
      ArrowLeft: at === undefined ? last : Math.max(0, at - 1),
      ArrowRight: at === undefined ? 0 : Math.min(last, at + 1),
      Home: 0,
      End: last,
      Escape: -1,
    }[event.key]
    if (next === undefined) return
    event.preventDefault()
    pointed = undefined
    const text = show(svg, next)
    svg.parentElement.querySelector('[role=status]').textContent = text ?? ''
  })

  document.addEventListener('focusout', ({ target }) => {
    const svg = chartOf(target)
    if (svg) show(svg)
  })

  // Does not replace a chart while a person reads its values.
  document.addEventListener('htmx:beforeRequest', (event) => {
    if (event.detail.elt.querySelector('svg[data-at]')) event.preventDefault()
  })

  /** Tells the form of the account page which time zone the browser has. */
  const hintZone = () => {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
    const hint = document.querySelector('[data-zone-hint]')
    const select = document.getElementById('field-zone')
    if (!hint || select.value === zone) return
    hint.textContent = `Your browser is in ${zone.replaceAll('_', ' ')}.`
    hint.hidden = false
  }

  const enhance = () => {
    for (const svg of document.querySelectorAll('svg[data-chart]:not([data-ready])')) {
      enhanceChart(svg)
    }
  }
  document.addEventListener('htmx:afterSwap', enhance)
  enhance()
  hintZone()
})()
