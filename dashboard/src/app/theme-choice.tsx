// The choice between light, dark, and as the machine has it: three signs, of which the arrow keys choose one.
import { Moon, Sun, SunMoon, type LucideIcon } from 'lucide-react'
import { useId } from 'react'
import { setTheme, useTheme, type Theme } from './theme'

const THEMES: [Theme, LucideIcon, string][] = [['light', Sun, 'Light'], ['dark', Moon, 'Dark'], ['system', SunMoon, 'As the machine']]

/** Roomy where fingers choose. */
export function ThemeChoice({ isRoomy = false }: { isRoomy?: boolean }) {
  const theme = useTheme((all) => all.theme)
  const name = useId()
  return (
    <fieldset className="flex rounded-md border border-line">
      <legend className="sr-only">Theme</legend>
      {THEMES.map(([id, Icon, words]) => (
        <label
          key={id}
          title={words}
          className={`flex cursor-pointer items-center justify-center rounded ${isRoomy ? 'h-[38px] w-[42px]' : 'p-1.5'} has-focus-visible:outline-2 has-focus-visible:outline-accent ${theme === id ? 'bg-accent-wash text-accent' : 'text-faint hover:text-ink'}`}
        >
          <input type="radio" name={name} className="sr-only" aria-label={words} checked={theme === id} onChange={() => setTheme(id)} />
          <Icon size={isRoomy ? 16 : 14} aria-hidden />
        </label>
      ))}
    </fieldset>
  )
}
