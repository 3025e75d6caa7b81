/* The pages of a link. A list of suggestions applies to the whole field: put the earlier tags
   before each suggested one. */
document.addEventListener('input', ({ target }) => {
  if (target.dataset.tags === undefined) return
  const before = target.value.replace(/[^,]*$/, '').trimEnd()
  // An account without tags has no list.
  for (const option of target.list?.options ?? []) {
    option.dataset.tag ??= option.value
    option.value = before === '' ? option.dataset.tag : `${before} ${option.dataset.tag}`
  }
})

/* The fields of a campaign and the URL whose parameters they are follow one another. */
;(() => {
  const split = (url) => /^([^?#]*)\??([^#]*)(.*)$/s.exec(url).slice(1)
  /** As the service writes it. An empty value removes the parameter. */
  const withParameter = (url, name, value) => {
    const [start, query, fragment] = split(url)
    const pairs = query.split('&').filter(Boolean)
    const isOther = (pair) => !new URLSearchParams(pair).has(name)
    const at = pairs.findIndex((pair) => !isOther(pair))
    const kept = pairs.filter(isOther)
    if (value) kept.splice(at < 0 ? kept.length : at, 0, `${name}=${encodeURIComponent(value)}`)
    return start + (kept.length > 0 ? `?${kept.join('&')}` : '') + fragment
  }
  /** Undefined for a form without one URL and its campaign. */
  const partsOf = (form) => {
    const { url, campaign_shown: shown } = form?.elements ?? {}
    if (!url || !shown) return undefined
    const before = new URLSearchParams(shown.value)
    const fields = [...form.querySelectorAll('[name^=utm_]')]
    const isChanged = ({ name, value }) => value.trim() !== (before.get(name) ?? '')
    const show = (textOf) => {
      shown.value = `?${new URLSearchParams(fields.map((field) => [field.name, textOf(field)]))}`
    }
    return { url, fields, isChanged, show }
  }
  const write = (form) => {
    const { url, fields, isChanged, show } = partsOf(form) ?? {}
    if (!url?.value) return
    for (const field of fields.filter(isChanged)) {
      url.value = withParameter(url.value, field.name, field.value.trim())
    }
    show(({ value }) => value.trim())
  }
  /** What was typed into the fields for the next URL stays. */
  const read = (form) => {
    const { url, fields, isChanged, show } = partsOf(form) ?? {}
    if (!url) return
    const sent = new URLSearchParams(split(url.value)[1])
    const textOf = ({ name }) => sent.get(name) ?? ''
    for (const field of fields) if (!isChanged(field)) field.value = textOf(field)
    show(textOf)
  }
  document.addEventListener('input', ({ target }) => {
    if (target.name === 'url') read(target.form)
    else if (target.name?.startsWith('utm_')) write(target.form)
  })
  document.addEventListener('change', ({ target }) => {
    if (target.name === 'url') write(target.form)
  })
  document.addEventListener('htmx:afterSwap', () => {
    write(document.getElementById('campaign-fields')?.closest('form'))
  })
})()

/* Leaving a form with text that is not saved asks. */
;(() => {
  const shown = new WeakMap()
  const textOf = (form) => new URLSearchParams(new FormData(form)).toString()
  const forms = () => document.querySelectorAll('form[data-asks]')
  /** The browser sends a form, or the person chose Cancel. */
  let isSending = false
  let password = ''
  const enter = () => {
    for (const form of forms()) if (!shown.has(form)) shown.set(form, textOf(form))
  }
  const isUnsaved = (form) => form.dataset.asks === 'unsaved' || textOf(form) !== shown.get(form)
  addEventListener('beforeunload', (event) => {
    if (!isSending && [...forms()].some(isUnsaved)) event.preventDefault()
  })
  addEventListener('submit', ({ target }) => {
    isSending = target.matches('[data-asks]')
  })
  addEventListener('click', ({ target }) => {
    if (target.closest?.('.rule-form a')) isSending = true
  })
  document.addEventListener('htmx:afterRequest', () => {
    isSending = false
  })
  addEventListener('pageshow', () => {
    isSending = false
  })
  document.addEventListener('htmx:beforeRequest', () => {
    password = document.getElementById('field-link_password')?.value ?? ''
  })
  document.addEventListener('htmx:afterSwap', () => {
    enter()
    // The server does not send a password back.
    const field = document.querySelector('[data-asks=unsaved] #field-link_password')
    if (field) field.value = password
  })
  enter()
})()

/* Destinations by rule. */
;(() => {
  document.addEventListener('click', ({ target }) => {
    const button = target.closest?.('[data-drop]')
    if (!button) return
    document.getElementById(button.dataset.drop).checked = false
    document.querySelector('[popovertarget=condition-menu]').focus()
  })
  // A chosen condition begins at its first field.
  document.addEventListener('change', ({ target }) => {
    if (target.name !== 'use' || !target.checked) return
    document.getElementById('condition-menu').hidePopover()
    document.querySelector(`[data-line=${target.value}] :is(input, select)`).focus()
  })

  let row
  let next
  const rowOf = (target) => target.closest?.('.rules > [data-at]')
  document.addEventListener('dragstart', ({ target, dataTransfer }) => {
    if (!target.matches?.('.grip')) return
    row = rowOf(target)
    next = row.nextSibling
    dataTransfer.effectAllowed = 'move'
    dataTransfer.setDragImage(row, 0, 0)
    row.classList.add('dragged')
  })
  document.addEventListener('dragover', (event) => {
    const over = row && rowOf(event.target)
    if (!over) return
    event.preventDefault()
    if (over === row) return
    const isBelow = row.compareDocumentPosition(over) & Node.DOCUMENT_POSITION_FOLLOWING
    over[isBelow ? 'after' : 'before'](row)
  })
  document.addEventListener('drop', (event) => {
    if (!row) return
    event.preventDefault()
    const form = document.getElementById('move-rule')
    form.elements.at.value = row.dataset.at
    form.elements.to.value = [...row.parentElement.querySelectorAll('[data-at]')].indexOf(row)
    if (form.elements.at.value !== form.elements.to.value) form.requestSubmit()
    next = undefined
  })
  document.addEventListener('dragend', () => {
    row?.classList.remove('dragged')
    // Dropped elsewhere.
    if (row && next) next.before(row)
    row = undefined
  })
})()
