// The scope of a token as people write it: entries between spaces or commas.
export const words = (text: string): string[] => text.split(/[\s,]+/).filter((word) => word !== '')
