// Names separated by commas or line ends, each once.
export const listOf = (text: string): string[] => [...new Set(text.split(/[,\n]/).map((part) => part.trim()).filter((part) => part !== ''))]
