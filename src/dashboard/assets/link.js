/* The page of a link. A list of suggestions applies to the whole field: put the earlier tags before
   each suggested one. */
document.addEventListener('input', ({ target }) => {
  if (target.dataset.tags === undefined) return
  const before = target.value.replace(/[^,]*$/, '').trimEnd()
  // An account without tags has no list.
  for (const option of target.list?.options ?? []) {
    option.dataset.tag ??= option.value
    option.value = before === '' ? option.dataset.tag : `${before} ${option.dataset.tag}`
  }
})
