// Whether there is room beside things, or only below them.
import { useSyncExternalStore } from 'react'

const wide = matchMedia('(min-width: 768px)')

const subscribe = (told: () => void) => {
  wide.addEventListener('change', told)
  return () => wide.removeEventListener('change', told)
}

export const useWide = (): boolean => useSyncExternalStore(subscribe, () => wide.matches)
