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
